import { ServiceError } from "../../src/domain/call/error.ts";
import { explainUnreadable, usageError } from "../terminal/exit.ts";

/**
 * Creates an HTTP client that also trusts the certificates of a PEM file. Throws a usage error for any other file.
 */
export async function openTrustingClient(path: string, named: string): Promise<Deno.HttpClient> {
  let pem: string;
  try {
    pem = await Deno.readTextFile(path);
  } catch (error) {
    throw usageError(`${named}: cannot read ${path}: ${explainUnreadable(error)}`);
  }
  const certificates = pem.match(/-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g);
  if (certificates === null) {
    throw usageError(`${named}: ${path} has no certificate. Use a PEM file.`);
  }
  return Deno.createHttpClient({ caCerts: certificates });
}

/** A connection that failed before the request was sent. */
export class NotConnected extends ServiceError {}

/** Whether the connection was lost or the server is stopping, so that a retry may succeed. */
export function isConnectionLost(error: unknown): boolean {
  if (error instanceof ServiceError) return error.code === "unavailable";
  // The server closed the connection within a response (facts, Deno 9).
  return error instanceof Deno.errors.ConnectionReset || error instanceof Deno.errors.Interrupted ||
    error instanceof TypeError && /body|connection/i.test(error.message);
}

// Maps errors of the runtime to messages with a next step.
const FAULTS: [said: RegExp, words: (url: URL) => string][] = [
  [
    /dns error|lookup address|Name or service|nodename nor servname/i,
    (url) => `Cannot find the host ${url.hostname}: unknown host name. Check SVC_URL.`,
  ],
  [
    /invalid peer certificate|certificate/i,
    (url) =>
      `Cannot trust the certificate of ${url.origin}: it has expired, is for another host, or has an unknown authority. ` +
      "Add a private authority with --ca or SVC_CA_FILE.",
  ],
  [
    /corrupt message|tls handshake|InvalidContentType/i,
    (url) => `Cannot use TLS with ${url.origin}: the server does not support it. Try http:// in SVC_URL.`,
  ],
  [
    /invalid HTTP version/i,
    (url) =>
      `Cannot use plain HTTP with ${url.origin}: the server does not support it. Try https:// in SVC_URL.`,
  ],
];

/**
 * Creates the error for a connection that failed before a response: four kinds, each with a next step (contract
 * 8.14).
 */
export function explainConnectionError(error: unknown, url: URL, inRun: boolean): ServiceError {
  const said = error instanceof Error
    ? `${error.message}: ${error.cause instanceof Error ? error.cause.message : ""}`
    : "";
  const known = FAULTS.find(([pattern]) => pattern.test(said));
  // An agent that follows this advice must not start a service.
  const down = inRun
    ? "it may be restarting. Try again in a moment."
    : "it may not be running. Start it with `svc serve`.";
  const words = known?.[1](url) ?? `Cannot reach the service at ${url.origin}: ${down}`;
  return /ECONNREFUSED|os error 111|[Cc]onnection refused|tcp connect error/.test(said) || known !== undefined
    ? new NotConnected("unavailable", words, { cause: error })
    : new ServiceError("unavailable", words, { cause: error });
}
