import SMTPConnection from "nodemailer/lib/smtp-connection";
import { Readable } from "node:stream";
import { DeliveryError } from "../platform.ts";
import { TIMEOUT_MS, UPLOAD_TIMEOUT_MS } from "../request.ts";
import { EmailError } from "./imap.ts";
import type { EmailSettings } from "./manifest.ts";

type SmtpSettings = EmailSettings["smtp"];

interface Envelope {
  from: string;
  to: string;
}

/** Sends a mail. Throws EmailError for a refusal; DeliveryError `unanswered` once the server has bytes of the mail. */
export async function sendMail(settings: SmtpSettings, envelope: Envelope, mail: Uint8Array): Promise<void> {
  let isDataSent = false;
  try {
    await withServer(settings, async (server) => {
      const body = Readable.from((function* () {
        isDataSent = true;
        yield mail;
      })());
      await settle((done) => server.send({ ...envelope, to: [envelope.to], size: mail.length }, body, done));
    });
  } catch (error) {
    throw classify(error, isDataSent);
  }
}

/** Logs in and sends nothing. Throws as sendMail() does. */
export async function checkServer(settings: SmtpSettings): Promise<void> {
  try {
    await withServer(settings, () => Promise.resolve());
  } catch (error) {
    throw classify(error, false);
  }
}

async function withServer(
  { host, port, tls, user, password }: SmtpSettings,
  step: (server: SMTPConnection) => Promise<void>,
): Promise<void> {
  const isImplicit = tls === "implicit";
  const server = new SMTPConnection({
    host,
    port: port ?? (isImplicit ? 465 : 587),
    secure: isImplicit,
    requireTLS: tls === "starttls",
    ignoreTLS: tls === "none",
    connectionTimeout: TIMEOUT_MS,
    greetingTimeout: TIMEOUT_MS,
    socketTimeout: UPLOAD_TIMEOUT_MS,
  });
  const { promise: failed, reject } = Promise.withResolvers<never>();
  failed.catch(() => {});
  server.on("error", reject);
  try {
    await Promise.race([
      failed,
      (async () => {
        await settle((done) => server.connect(done));
        if (user !== "") {
          await settle((done) => server.login({ credentials: { user, pass: password } }, done));
        }
        await step(server);
      })(),
    ]);
    server.quit();
  } catch (error) {
    server.close();
    throw error;
  }
}

function settle(start: (done: (error?: Error | null) => void) => void): Promise<void> {
  return new Promise((resolve, reject) => start((error) => error ? reject(error) : resolve()));
}

interface LibraryError extends Error {
  code?: string;
  response?: string;
  responseCode?: number;
}

function classify(error: unknown, isDataSent: boolean): Error {
  if (error instanceof DeliveryError) return error;
  const { code = "", message, response, responseCode = 0 } = error as LibraryError;
  const words = `SMTP answered: ${response ?? message}`;
  if (code === "EAUTH" || code === "ENOAUTH") return new EmailError(words, "unreachable", true);
  if (responseCode >= 500) return new EmailError(words, "refused");
  if (responseCode === 421) return new EmailError(words, "unreachable");
  if (responseCode >= 400) return new EmailError(words, "limited");
  if (code === "EENVELOPE" || code === "EMESSAGE") return new EmailError(words, "refused");
  return isDataSent
    ? new DeliveryError("unanswered", "SMTP did not answer")
    : new DeliveryError("unreachable", `Cannot reach SMTP: ${message}`);
}
