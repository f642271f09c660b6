import { ServiceError } from "../../src/domain/error.ts";
import { usageError } from "../terminal/exit.ts";

/** An HTTP client that also trusts the certificates in a PEM file, or null without one. Throws a usage error for any other file. */
export async function openTrustingClient(path: string, named: string): Promise<Deno.HttpClient> {
  let pem: string;
  try {
    pem = await Deno.readTextFile(path);
  } catch (error) {
    throw usageError(
      `${named}: cannot read ${path}: ${
        error instanceof Deno.errors.NotFound ? "no such file" : "this user may not read it"
      }`,
    );
  }
  const certificates = pem.match(/-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g);
  if (certificates === null) {
    throw usageError(`${named}: there is no certificate in ${path}; it has to be a PEM file`);
  }
  return Deno.createHttpClient({ caCerts: certificates });
}

/** A connection that never came about, so that nothing was sent. */
export class NotConnected extends ServiceError {}

/** Whether the connection to the server was lost, or it is stopping: the same may be asked again in a moment. */
export function isConnectionLost(error: unknown): boolean {
  if (error instanceof ServiceError) return error.code === "unavailable";
  // The server went away in the middle of an answer (facts, Deno 9).
  return error instanceof Deno.errors.ConnectionReset || error instanceof Deno.errors.Interrupted ||
    error instanceof TypeError && /body|connection/i.test(error.message);
}

// What the runtime says of a connection that did not come about, and what a person can do.
const FAULTS: [said: RegExp, words: (url: URL) => string][] = [
  [
    /dns error|lookup address|Name or service|nodename nor servname/i,
    (url) => `Cannot find the host ${url.hostname}: no such name; check SVC_URL`,
  ],
  [
    /invalid peer certificate|certificate/i,
    (url) =>
      `Cannot trust the certificate of ${url.origin}: it is not for this host, has expired, or comes from an authority that ` +
      "is not known here; name a private one with --ca or SVC_CA_FILE",
  ],
  [
    /corrupt message|tls handshake|InvalidContentType/i,
    (url) => `Cannot speak TLS with ${url.origin}: what listens there does not; is it http:// in SVC_URL?`,
  ],
  [
    /invalid HTTP version/i,
    (url) =>
      `Cannot speak plain HTTP with ${url.origin}: what listens there does not; is it https:// in SVC_URL?`,
  ],
];

/** The error for a connection that failed before an answer came: four kinds, each with its way out (contract 8.14). */
export function explainConnectionError(error: unknown, url: URL, inRun: boolean): ServiceError {
  const said = error instanceof Error
    ? `${error.message}: ${error.cause instanceof Error ? error.cause.message : ""}`
    : "";
  const known = FAULTS.find(([pattern]) => pattern.test(said));
  // An agent that takes this for advice must not start a service of its own.
  const down = inRun
    ? "it is stopping or gone; try again in a moment"
    : "is it running? Start it with: svc serve";
  const words = known?.[1](url) ?? `Cannot reach the service at ${url.origin}: ${down}`;
  return /ECONNREFUSED|os error 111|[Cc]onnection refused|tcp connect error/.test(said) || known !== undefined
    ? new NotConnected("unavailable", words, { cause: error })
    : new ServiceError("unavailable", words, { cause: error });
}
