import { SignJWT } from "jose/jwt/sign";
import { jwtVerify } from "jose/jwt/verify";

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

const ISSUER = "svc";

/** A token signed with the key itself, not from a login: no password change ends it, its short life does. */
export const OPERATOR_KEY_VERSION = 0;

/** Life of a token that `ctl` signs for one request, in seconds (contract 2). */
export const OPERATOR_KEY_TTL_S = 60;

/** Shortest signing key, in bytes (promises AUT-8). */
export const KEY_MIN_BYTES = 32;

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

/** The claims of a token that this key signed and that is not expired, else null. Only HS256 is accepted (promises AUT-1). */
export async function verifyToken(key: Uint8Array, token: string, now: number): Promise<Claims | null> {
  try {
    const { payload } = await jwtVerify(token, key, {
      algorithms: ["HS256"],
      issuer: ISSUER,
      requiredClaims: ["sub", "iat", "exp", "jti", "typ", "scope", "ver"],
      currentDate: new Date(now),
    });
    return isClaims(payload) ? payload : null;
  } catch {
    return null;
  }
}

function isClaims(payload: object): payload is Claims {
  const claims = payload as Record<string, unknown>;
  const { typ, ver, iat, exp } = claims;
  if (typeof claims.sub !== "string" || typeof claims.scope !== "string") return false;
  if (typeof ver !== "number" || typeof iat !== "number" || typeof exp !== "number") return false;
  if (typ === "run") return typeof claims.execution_id === "string" && typeof claims.attempt === "number";
  if (typ !== "access") return false;
  return ver !== OPERATOR_KEY_VERSION || exp - iat <= OPERATOR_KEY_TTL_S;
}

/** The bytes of a configured secret. Throws a plain Error when it is too short. */
export function keyBytes(secret: string): Uint8Array {
  const bytes = new TextEncoder().encode(secret);
  if (bytes.length < KEY_MIN_BYTES) {
    throw new Error(`must be at least ${KEY_MIN_BYTES} bytes long; make one with: openssl rand -base64 48`);
  }
  return bytes;
}
