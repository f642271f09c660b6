import { createHmac } from "node:crypto";
import { SignJWT } from "jose/jwt/sign";

/** Claims of every token that the service issues (contract 2). */
export interface Claims {
  typ: "access" | "run" | "token" | "runner";
  /** `operator:<name>`, `user:<id>`, `runner:<id>`, `worker:<id>` or `bee`. */
  sub: string;
  /** Scopes, separated by spaces. The database decides at each request which of them are valid. */
  scope: string;
  /** Version of the user's password, or OPERATOR_KEY_VERSION for tokens that `ctl` signs. */
  ver: number;
  /** Unix seconds. */
  iat: number;
  exp: number;
  jti: string;
  /** Tokens that `ctl` signs: the instance of the service that accepts them (contract 8.14). */
  instance?: string;
  /** Name of the user or runner, for display. */
  name?: string;
  /** Tokens of a login: its id. */
  login?: string;
  /** Runners only. */
  labels?: string[];
  /** Run tokens only. */
  execution_id?: string;
  attempt?: number;
  worker_id?: string;
  session_key?: string;
  message_id?: string;
}

export const ISSUER = "svc";

/** Version of tokens that `ctl` signs with the key. A password change does not revoke these tokens, but they expire soon. */
export const OPERATOR_KEY_VERSION = 0;

/** Lifetime of a token that `ctl` signs for one request, in seconds. */
export const OPERATOR_KEY_TTL_S = 60;

/** Shortest signing key, in bytes (reliability AUT-8). */
const KEY_MIN_BYTES = 32;

/** Signs `claims` with HS256. `ttl_s` counts from `now` (Unix ms). */
export function signToken(
  key: Uint8Array,
  claims: Omit<Claims, "iat" | "exp" | "jti">,
  ttl_s: number,
  now: number,
): Promise<string> {
  const issued = Math.floor(now / 1000);
  return sign(key, { ...claims, iat: issued, exp: issued + ttl_s, jti: crypto.randomUUID() });
}

// The last second of the year 9999.
const NEVER_S = 253_402_300_799;

/** Signs a named token. The same row gives the same token, which is valid as long as the row exists. */
export function signNamedToken(
  key: Uint8Array,
  token: { id: string; user_id: string; scopes: string[]; created_at: number; expires_at: number | null },
): Promise<string> {
  return sign(key, {
    typ: "token",
    sub: `user:${token.user_id}`,
    scope: token.scopes.join(" "),
    ver: 1,
    iat: Math.floor(token.created_at / 1000),
    exp: token.expires_at === null ? NEVER_S : Math.ceil(token.expires_at / 1000),
    jti: token.id,
  });
}

/**
 * Signs the token of a runner, which is valid as long as its row exists (contract 18). Includes name and labels for display.
 */
export function signRunnerToken(
  key: Uint8Array,
  { id, name, labels, created_at }: {
    id: string;
    name: string;
    labels: readonly string[];
    created_at: number;
  },
): Promise<string> {
  return sign(key, {
    typ: "runner",
    sub: `runner:${id}`,
    scope: RUNNER_SCOPES.join(" "),
    ver: 1,
    iat: Math.floor(created_at / 1000),
    exp: NEVER_S,
    jti: id,
    name,
    labels: [...labels],
  });
}

export const RUNNER_SCOPES = ["write:runs"];

// Caches the imported key: every run signs a token.
const READY = new WeakMap<Uint8Array, Promise<CryptoKey>>();

function getReadyKey(key: Uint8Array): Promise<CryptoKey> {
  const known = READY.get(key);
  if (known !== undefined) return known;
  const made = crypto.subtle.importKey(
    "raw",
    Uint8Array.from(key),
    { name: "HMAC", hash: "SHA-256" },
    false,
    ["sign"],
  );
  READY.set(key, made);
  return made;
}

async function sign(key: Uint8Array, { sub, iat, exp, jti, ...rest }: Claims): Promise<string> {
  return await new SignJWT(rest)
    .setProtectedHeader({ alg: "HS256", typ: "JWT" })
    .setIssuer(ISSUER)
    .setSubject(sub)
    .setIssuedAt(iat)
    .setExpirationTime(exp)
    .setJti(jti)
    .sign(await getReadyKey(key));
}

/** Returns the bytes of a configured secret. Throws a plain Error for a short one. */
export function readKeyBytes(secret: string): Uint8Array {
  const bytes = new TextEncoder().encode(secret);
  if (bytes.length < KEY_MIN_BYTES) {
    throw new Error(
      `must be at least ${KEY_MIN_BYTES} bytes long. Generate one with: openssl rand -base64 48`,
    );
  }
  return bytes;
}

/** Returns a fingerprint of a signing key, with which servers of one database compare their keys (contract 18). */
export function computeKeyFingerprint(key: Uint8Array): string {
  return createHmac("sha256", key).update("svc signing key").digest("hex").slice(0, 16);
}
