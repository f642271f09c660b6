import { signToken } from "../base/token.ts";
import type { RunIdentity } from "../domain/call/run_identity.ts";

/** The identity and scopes of a run when it calls the service. */
export interface Grant {
  subject: string;
  scopes: readonly string[];
}

export interface TokenRequest {
  identity: RunIdentity;
  grant: Grant;
  lifeS: number;
}

/** Signs the token of a run, which is valid until the run ends, and for `lifeS` seconds at most (contract 2.7). */
export function signRunToken(
  key: Uint8Array,
  { identity, grant, lifeS }: TokenRequest,
  now: number,
): Promise<string> {
  const { execution_id, attempt, worker_id, session_key, message_id } = identity;
  return signToken(
    key,
    {
      typ: "run",
      sub: grant.subject,
      scope: grant.scopes.join(" "),
      ver: 1,
      ...{ execution_id, attempt, worker_id, session_key, message_id },
    },
    lifeS,
    now,
  );
}
