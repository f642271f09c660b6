import { createHmac, timingSafeEqual } from "node:crypto";

// How far the time of a signature may be away.
const TOLERANCE_S = 5 * 60;

type Headers = Readonly<Record<string, string>>;

/** A body that came with its signature. */
export interface Signed {
  headers: Headers;
  body: Uint8Array;
  now: number;
}

/** The three headers of a signed request. */
export function standardHeaders(
  secret: string,
  id: string,
  now: number,
  body: string,
): Record<string, string> {
  const timestamp = String(Math.floor(now / 1000));
  const mac = standardMac(secret, id, timestamp, new TextEncoder().encode(body));
  return {
    "webhook-id": id,
    "webhook-timestamp": timestamp,
    "webhook-signature": `v1,${mac.toString("base64")}`,
  };
}

/** Whether a signature of Standard Webhooks counts: over these bytes, with this secret, within five minutes. */
export function verifyStandard(secret: string, { headers, body, now }: Signed): boolean {
  const id = headers["webhook-id"] ?? "";
  const timestamp = headers["webhook-timestamp"] ?? "";
  if (id === "" || id.includes(".") || !isFresh(timestamp, now)) return false;
  const wanted = standardMac(secret, id, timestamp, body);
  // Several are sent while a secret is changed; other versions are not ours to judge.
  const given = (headers["webhook-signature"] ?? "").split(" ").filter((one) => one.startsWith("v1,"));
  return given.some((one) => same(wanted, decode(one.slice(3), "base64")));
}

/** GitHub: `X-Hub-Signature-256`. It has no time; a delivery that comes again has the same id. */
export function verifyGitHub(secret: string, { headers, body }: Signed): boolean {
  const [, given = ""] = /^sha256=([0-9a-f]{64})$/.exec(headers["x-hub-signature-256"] ?? "") ?? [];
  return given !== "" && same(createHmac("sha256", secret).update(body).digest(), decode(given, "hex"));
}

/** Slack: `X-Slack-Signature` over time and body, within five minutes. */
export function verifySlack(secret: string, { headers, body, now }: Signed): boolean {
  const timestamp = headers["x-slack-request-timestamp"] ?? "";
  const [, given = ""] = /^v0=([0-9a-f]{64})$/.exec(headers["x-slack-signature"] ?? "") ?? [];
  if (given === "" || !isFresh(timestamp, now)) return false;
  const wanted = createHmac("sha256", secret).update(`v0:${timestamp}:`).update(body).digest();
  return same(wanted, decode(given, "hex"));
}

function standardMac(secret: string, id: string, timestamp: string, body: Uint8Array) {
  const key = decode(secret.replace(/^whsec_/, ""), "base64");
  return createHmac("sha256", key).update(`${id}.${timestamp}.`).update(body).digest();
}

function isFresh(timestamp: string, now: number): boolean {
  return /^\d{1,12}$/.test(timestamp) && Math.abs(now / 1000 - Number(timestamp)) <= TOLERANCE_S;
}

function decode(text: string, encoding: "hex" | "base64"): Uint8Array {
  if (encoding === "hex") {
    return Uint8Array.from(text.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
  }
  try {
    return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  } catch {
    return new Uint8Array();
  }
}

function same(wanted: Uint8Array, given: Uint8Array): boolean {
  return wanted.length === given.length && timingSafeEqual(wanted, given);
}
