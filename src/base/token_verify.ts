import { jwtVerify } from "jose/jwt/verify";
import { type Claims, ISSUER, OPERATOR_KEY_TTL_S, OPERATOR_KEY_VERSION } from "./token.ts";

/**
 * Returns the claims of a token that this key signed and that has not expired, else null. Accepts HS256 only (reliability
 * AUT-1).
 */
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
  const { typ, ver, iat, exp, sub } = claims;
  if (typeof sub !== "string" || typeof claims.scope !== "string") return false;
  if (typeof ver !== "number" || typeof iat !== "number" || typeof exp !== "number") return false;
  // The audience is this service only, and each type has its own kind of subject.
  if ("aud" in claims) return false;
  if (typ === "run") {
    return !/^(operator|user|runner):/.test(sub) && typeof claims.execution_id === "string" &&
      typeof claims.attempt === "number";
  }
  if (typ === "runner") return sub.startsWith("runner:");
  if (typ === "token") return sub.startsWith("user:") && typeof claims.jti === "string";
  if (typ !== "access") return false;
  if (ver !== OPERATOR_KEY_VERSION) return /^(operator|user):/.test(sub);
  return sub.startsWith("operator:") && exp - iat <= OPERATOR_KEY_TTL_S &&
    typeof claims.instance === "string";
}
