import { createHmac } from "node:crypto";
import { SignJWT } from "jose/jwt/sign";

/** Claims of every token of ours (contract 2). */
export interface Claims {
  typ: "access" | "run" | "token" | "runner";
  /** `operator:<name>`, `user:<id>`, `runner:<id>`, `worker:<id>` or `bee`. */
  sub: string;
  /** Scopes, space separated. What counts is what stands in the database at each request. */
  scope: string;
  /** Version of the user's password; OPERATOR_KEY_VERSION for tokens that `ctl` signs itself. */
  ver: number;
  /** Unix seconds. */
  iat: number;
  exp: number;
  jti: string;
  /** Tokens that `ctl` signs itself: the running service that takes them (contract 8.14). */
  instance?: string;
  /** Of logins and runners: the name, for whoever shows it. */
  name?: string;
  /** Runners only. */
  labels?: string[];
  /** Run tokens only. */
  execution_id?: string;
  attempt?: number;
  worker_id?: string;
  session_key?: string;
  message_id?: string;
}

/** Who issues our tokens. */
export const ISSUER = "svc";

/** Version of a token that was signed with the key itself and not after a login: a new password does not end it, it expires soon. */
export const OPERATOR_KEY_VERSION = 0;

/** Life of a token that `ctl` signs for one request, in seconds (contract 2). */
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

// So far away that nothing of ours is left.
const NEVER_S = 253_402_300_799;

/** Signs a named token: the same row gives the same token. It counts while its row is there (contract 9). */
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

/** Signs the token of a runner, which counts while its row is there (contract 18). It names itself and its labels, for whoever reads it. */
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

/** What a runner may do. */
export const RUNNER_SCOPES = ["write:runs"];

// Each run has a token, and its key has to be made ready once only.
const READY = new WeakMap<Uint8Array, Promise<CryptoKey>>();

function readyKey(key: Uint8Array): Promise<CryptoKey> {
  const known = READY.get(key);
  if (known !== undefined) return known;
  const made = crypto.subtle.importKey(
    "raw",
    Uint8Array.from(key),
    { name: "HMAC", hash: "SHA-256" },
    false,
    [
      "sign",
    ],
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
    .sign(await readyKey(key));
}

/** The bytes of a configured secret. Throws a plain Error when it is too short. */
export function keyBytes(secret: string): Uint8Array {
  const bytes = new TextEncoder().encode(secret);
  if (bytes.length < KEY_MIN_BYTES) {
    throw new Error(`must be at least ${KEY_MIN_BYTES} bytes long; make one with: openssl rand -base64 48`);
  }
  return bytes;
}

/** Names a signing key without telling it, so that servers of one database can compare theirs (contract 18). */
export function keyFingerprint(key: Uint8Array): string {
  return createHmac("sha256", key).update("svc signing key").digest("hex").slice(0, 16);
}
