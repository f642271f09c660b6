import { Buffer } from "node:buffer";
import { createECDH } from "node:crypto";
import { SignJWT } from "jose/jwt/sign";

// A changed label gives another key, and every browser would have to subscribe again.
const LABEL = "svc push key v1";
// 128 bits more than the order of the curve, so that the remainder has no bias (FIPS 186-5, A.2.1).
const SEED_BITS = 384;
const SCALAR_BYTES = 32;
const CURVE_ORDER = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;
const TOKEN_LIFE_S = 12 * 60 * 60;

/** The key with which push services recognize this service (RFC 8292). */
export interface VapidKey {
  /** The uncompressed point in base64url, as browsers and push services expect it. */
  publicKey: string;
  privateKey: CryptoKey;
}

/** Derives the key from the signing key, so it exists wherever the signing key does and no row stores it. */
export async function deriveVapidKey(signingKey: Uint8Array): Promise<VapidKey> {
  const root = await crypto.subtle.importKey("raw", Uint8Array.from(signingKey), "HKDF", false, [
    "deriveBits",
  ]);
  const info = new TextEncoder().encode(LABEL);
  const hkdf = { name: "HKDF", hash: "SHA-256", salt: new Uint8Array(), info };
  const seed = Buffer.from(await crypto.subtle.deriveBits(hkdf, root, SEED_BITS));
  const scalar = BigInt(`0x${seed.toString("hex")}`) % (CURVE_ORDER - 1n) + 1n;
  const secret = Buffer.from(scalar.toString(16).padStart(2 * SCALAR_BYTES, "0"), "hex");
  const pair = createECDH("prime256v1");
  pair.setPrivateKey(secret);
  const point = pair.getPublicKey();
  const jwk = {
    kty: "EC",
    crv: "P-256",
    d: secret.toString("base64url"),
    x: point.subarray(1, 1 + SCALAR_BYTES).toString("base64url"),
    y: point.subarray(1 + SCALAR_BYTES).toString("base64url"),
  };
  const algorithm = { name: "ECDSA", namedCurve: "P-256" };
  const privateKey = await crypto.subtle.importKey("jwk", jwk, algorithm, false, ["sign"]);
  return { publicKey: point.toString("base64url"), privateKey };
}

/** Builds the header that authorizes a push to the origin of an endpoint. `contact` is an https or mailto address of the operator. */
export async function buildVapidHeader(
  { publicKey, privateKey }: VapidKey,
  { endpoint, contact, now }: { endpoint: string; contact: string; now: number },
): Promise<string> {
  const token = await new SignJWT({ sub: contact })
    .setProtectedHeader({ alg: "ES256", typ: "JWT" })
    .setAudience(new URL(endpoint).origin)
    .setExpirationTime(Math.floor(now / 1000) + TOKEN_LIFE_S)
    .sign(privateKey);
  return `vapid t=${token}, k=${publicKey}`;
}
