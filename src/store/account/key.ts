import { endAllLogins } from "./credential.ts";
import { guarded, type Statement } from "../db/database.ts";
import { EXECUTION_IS_OPEN } from "../db/status_sql.ts";

/** Revokes everything that the signing key has signed, guarded by no open run, because runs hold such tokens (contract 8.16). */
export function endEverySignature(now: number): Statement[] {
  return [
    ...guarded(
      `update credential
      set updated_at = ?
      where not exists (select 1 from execution where status ${EXECUTION_IS_OPEN})
        and not exists (select 1 from bee_run where status = 'running')`,
      [now],
    ),
    ...endAllLogins(now),
    { sql: "update user set version = version + 1, updated_at = ?", args: [now] },
    { sql: "delete from token", args: [] },
  ];
}
