import { SignJWT } from "jose/jwt/sign";

/** Claims of every token of ours (contract 2). */
export interface Claims {
  typ: "access" | "run";
  /** `operator:<name>`, `worker:<id>` or `bee`. */
  sub: string;
  /** Scopes, space separated. */
  scope: string;
  /** Version of the operator's password; OPERATOR_KEY_VERSION for tokens that `ctl` signs itself. */
  ver: number;
  /** Unix seconds. */
  iat: number;
  exp: number;
  jti: string;
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
  const { sub, ...rest } = claims;
  const issued = Math.floor(now / 1000);
  return new SignJWT(rest)
    .setProtectedHeader({ alg: "HS256", typ: "JWT" })
    .setIssuer(ISSUER)
    .setSubject(sub)
    .setIssuedAt(issued)
    .setExpirationTime(issued + ttl_s)
    .setJti(crypto.randomUUID())
    .sign(key);
}

/** The bytes of a configured secret. Throws a plain Error when it is too short. */
export function keyBytes(secret: string): Uint8Array {
  const bytes = new TextEncoder().encode(secret);
  if (bytes.length < KEY_MIN_BYTES) {
    throw new Error(`must be at least ${KEY_MIN_BYTES} bytes long; make one with: openssl rand -base64 48`);
  }
  return bytes;
}
