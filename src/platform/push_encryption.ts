import { Buffer } from "node:buffer";
import { countBytes } from "../base/bytes.ts";

/** The keys of a `PushSubscription`, in base64url. */
export interface SubscriptionKeys {
  /** The public key of the browser: an uncompressed point on P-256. */
  p256dh: string;
  auth: string;
}

/** Most bytes of a message. A push service can refuse a body of more than 4,096 bytes (RFC 8030, 7.2). */
const PUSH_TEXT_MAX_BYTES = 3_993;
const RECORD_BYTES = 4_096;
const SALT_BYTES = 16;
const CURVE = { name: "ECDH", namedCurve: "P-256" };
// Marks the last record.
const LAST = 0x02;

/** Values that are random except in tests. */
interface Randomness {
  salt: Uint8Array;
  pair: CryptoKeyPair;
}

/** Encrypts a message for one browser (RFC 8291). Throws for a public key that is not a point on the curve. */
export async function encryptPush(
  text: string,
  { p256dh, auth }: SubscriptionKeys,
  { salt, pair }: Partial<Randomness> = {},
): Promise<Uint8Array> {
  if (countBytes(text) > PUSH_TEXT_MAX_BYTES) throw new Error("the message is too long for a push service");
  const used = salt ?? crypto.getRandomValues(new Uint8Array(SALT_BYTES));
  const { publicKey, privateKey } = pair ?? await generatePair();
  const theirs = concat(Buffer.from(p256dh, "base64url"));
  const browserKey = await crypto.subtle.importKey("raw", theirs, CURVE, false, []);
  const shared = await crypto.subtle.deriveBits({ name: "ECDH", public: browserKey }, privateKey, 256);
  const own = new Uint8Array(await crypto.subtle.exportKey("raw", publicKey));
  const info = concat("WebPush: info\0", theirs, own);
  const secret = await expand(new Uint8Array(shared), Buffer.from(auth, "base64url"), info, 256);
  const key = await expand(secret, used, concat("Content-Encoding: aes128gcm\0"), 128);
  const iv = await expand(secret, used, concat("Content-Encoding: nonce\0"), 96);
  const cipher = await crypto.subtle.importKey("raw", key, "AES-GCM", false, ["encrypt"]);
  const record = await crypto.subtle.encrypt({ name: "AES-GCM", iv }, cipher, concat(text, [LAST]));
  const size = new Uint8Array(4);
  new DataView(size.buffer).setUint32(0, RECORD_BYTES);
  return concat(used, size, [own.length], own, new Uint8Array(record));
}

function generatePair(): Promise<CryptoKeyPair> {
  return crypto.subtle.generateKey(CURVE, false, ["deriveBits"]);
}

async function expand(
  secret: Uint8Array<ArrayBuffer>,
  salt: Uint8Array,
  info: Uint8Array<ArrayBuffer>,
  bits: number,
): Promise<Uint8Array<ArrayBuffer>> {
  const key = await crypto.subtle.importKey("raw", secret, "HKDF", false, ["deriveBits"]);
  const hkdf = { name: "HKDF", hash: "SHA-256", salt: Uint8Array.from(salt), info };
  return new Uint8Array(await crypto.subtle.deriveBits(hkdf, key, bits));
}

function concat(...parts: (string | Uint8Array | readonly number[])[]): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(Buffer.concat(parts.map((part) => Buffer.from(part as Uint8Array))));
}
