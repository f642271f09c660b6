import { ImapFlow } from "imapflow";
import { DeliveryError, PlatformError } from "../platform.ts";
import { TIMEOUT_MS } from "../request.ts";
import type { EmailSettings } from "./manifest.ts";

/** Size limit of one mail. */
export const MAIL_MAX_BYTES = 36 * 1024 * 1024;
const RESPONSE_BYTES = MAIL_MAX_BYTES + 1024 * 1024;
const SILENCE_MS = 120_000;

/** Error that a mail server answered. */
export class EmailError extends PlatformError {
  readonly isKeyRefused: boolean;
  readonly why: DeliveryError["why"];

  constructor(message: string, why: DeliveryError["why"], isKeyRefused = false) {
    super(message);
    this.why = why;
    this.isKeyRefused = isKeyRefused;
  }

  override get scope(): DeliveryError["scope"] {
    return "chat";
  }
}

/** Logs in to the IMAP server. Throws EmailError for a refusal, DeliveryError without a connection. */
export async function openImap(
  { host, port, tls, user, password }: EmailSettings["imap"],
  signal?: AbortSignal,
): Promise<ImapFlow> {
  const isImplicit = tls === "implicit";
  const client = new ImapFlow({
    host,
    port: port ?? (isImplicit ? 993 : 143),
    secure: isImplicit,
    ...(isImplicit ? {} : { doSTARTTLS: tls === "starttls" }),
    auth: { user, pass: password },
    disableAutoIdle: true,
    logger: false,
    connectionTimeout: TIMEOUT_MS,
    greetingTimeout: TIMEOUT_MS,
    socketTimeout: SILENCE_MS,
    maxLiteralSize: MAIL_MAX_BYTES,
    maxResponseSize: RESPONSE_BYTES,
  });
  // Each command that waits rejects, too. Without a listener, the error would end the service.
  client.on("error", () => {});
  const close = () => client.close();
  signal?.addEventListener("abort", close);
  try {
    await client.connect();
    return client;
  } catch (error) {
    client.close();
    throw toEmailError("IMAP", error);
  } finally {
    signal?.removeEventListener("abort", close);
  }
}

/** Runs a step with its own connection to a mailbox. */
export async function withMailbox<T>(
  settings: EmailSettings["imap"],
  path: string | ((client: ImapFlow) => Promise<string | null>),
  step: (client: ImapFlow) => Promise<T>,
): Promise<T | null> {
  const client = await openImap(settings);
  try {
    const found = typeof path === "string" ? path : await path(client);
    if (found === null) return null;
    await client.mailboxOpen(found, { readOnly: true });
    return await step(client);
  } catch (error) {
    throw toEmailError("IMAP", error);
  } finally {
    client.close();
  }
}

interface LibraryError extends Error {
  code?: string;
  responseText?: string;
  responseStatus?: string;
  authenticationFailed?: boolean;
}

/** Turns an error of the library into one that says what the server answered. */
export function toEmailError(server: string, error: unknown): Error {
  if (error instanceof PlatformError || error instanceof DeliveryError) return error;
  const { message, code = "", responseText, authenticationFailed } = error as LibraryError;
  if (authenticationFailed === true) {
    return new EmailError(`${server} refuses the login: ${responseText ?? message}`, "unreachable", true);
  }
  if (responseText !== undefined) return new EmailError(`${server} answered: ${responseText}`, "unreachable");
  return new DeliveryError("unreachable", `Cannot reach ${server}: ${message || code}`);
}
