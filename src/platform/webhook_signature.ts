import { Buffer } from "node:buffer";
import { createHash, createHmac, timingSafeEqual } from "node:crypto";

const TOLERANCE_S = 5 * 60;

type Headers = Readonly<Record<string, string>>;

export interface SignedBody {
  headers: Headers;
  body: Uint8Array;
  now: number;
}

/** Signs a body as Standard Webhooks. Returns the three headers. */
export function signStandard(
  secret: string,
  id: string,
  now: number,
  body: string,
): Record<string, string> {
  const timestamp = String(Math.floor(now / 1000));
  const mac = computeMac(secret, id, timestamp, new TextEncoder().encode(body));
  return {
    "webhook-id": id,
    "webhook-timestamp": timestamp,
    "webhook-signature": `v1,${mac.toString("base64")}`,
  };
}

/** Checks a signature of Standard Webhooks, at most five minutes old. */
export function verifyStandard(secret: string, { headers, body, now }: SignedBody): boolean {
  const id = headers["webhook-id"] ?? "";
  const timestamp = headers["webhook-timestamp"] ?? "";
  if (id === "" || id.includes(".") || !isFresh(timestamp, now)) return false;
  const wanted = computeMac(secret, id, timestamp, body);
  // A sender that rotates its secret sends several signatures. Other versions are unknown here.
  const given = (headers["webhook-signature"] ?? "").split(" ").filter((one) => one.startsWith("v1,"));
  return given.some((one) => isEqual(wanted, decodeBase64(one.slice(3))));
}

/** Checks the `X-Hub-Signature-256` of GitHub. It has no time, but a repeated delivery has the same id. */
export function verifyGitHub(secret: string, { headers, body }: SignedBody): boolean {
  const [, given = ""] = /^sha256=(.*)$/.exec(headers["x-hub-signature-256"] ?? "") ?? [];
  return isHmac(given, secret, body);
}

/** Checks the `X-Gitea-Signature` of Gitea and Forgejo. It has no time either. */
export function verifyGitea(secret: string, { headers, body }: SignedBody): boolean {
  return isHmac(headers["x-gitea-signature"] ?? "", secret, body);
}

function isHmac(given: string, secret: string, body: Uint8Array): boolean {
  return /^[0-9a-f]{64}$/.test(given) &&
    isEqual(createHmac("sha256", secret).update(body).digest(), Buffer.from(given, "hex"));
}

/** Checks the plain `X-Gitlab-Token`. */
export function verifyToken(secret: string, { headers }: SignedBody): boolean {
  const hash = (text: string) => createHash("sha256").update(text).digest();
  return isEqual(hash(secret), hash(headers["x-gitlab-token"] ?? ""));
}

/** Checks the `X-Slack-Signature` of Slack, at most five minutes old. */
export function verifySlack(secret: string, { headers, body, now }: SignedBody): boolean {
  const timestamp = headers["x-slack-request-timestamp"] ?? "";
  const [, given = ""] = /^v0=([0-9a-f]{64})$/.exec(headers["x-slack-signature"] ?? "") ?? [];
  if (given === "" || !isFresh(timestamp, now)) return false;
  const wanted = createHmac("sha256", secret).update(`v0:${timestamp}:`).update(body).digest();
  return isEqual(wanted, Buffer.from(given, "hex"));
}

function computeMac(secret: string, id: string, timestamp: string, body: Uint8Array) {
  const key = decodeBase64(secret.replace(/^whsec_/, ""));
  return createHmac("sha256", key).update(`${id}.${timestamp}.`).update(body).digest();
}

function isFresh(timestamp: string, now: number): boolean {
  return /^\d{1,12}$/.test(timestamp) && Math.abs(now / 1000 - Number(timestamp)) <= TOLERANCE_S;
}

function decodeBase64(text: string): Uint8Array {
  try {
    return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  } catch {
    return new Uint8Array();
  }
}

function isEqual(wanted: Uint8Array, given: Uint8Array): boolean {
  return wanted.length === given.length && timingSafeEqual(wanted, given);
}
