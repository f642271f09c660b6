import { WAKEUP } from "../../base/wakeups.ts";
import { usageSchema } from "../../domain/work/execution.ts";
import type { RunIdentity } from "../../domain/call/run_identity.ts";
import type { RunBinding } from "../../domain/call/scope.ts";
import { buildSet, type Database, guard, insertRow, type Statement } from "../db/database.ts";
import { type BeeRun, beeRunSchema } from "../../domain/chat/bee_run.ts";
import type { Listing } from "../../domain/call/page.ts";
import { limitToConversation, type Where } from "../db/filter.ts";
import { MESSAGE_DEPTH } from "./inbound.ts";
import { list } from "../db/list.ts";
import { buildJsonSql } from "../db/json_projection.ts";
import { buildUsageSet } from "../work/execution.ts";

/** A new run of the coordinator. The built-in rules start and end it in the same batch. */
interface NewBeeRun extends RunIdentity {
  engine: string;
  created_at: number;
}

export interface BeeRunEnd
  extends Pick<BeeRun, "reason" | "reply" | "task_count" | "error" | "failure" | "usage"> {
  status: "completed" | "failed";
}

export function insertBeeRun(run: NewBeeRun): Statement {
  const { execution_id: id, message_id, session_key, engine, attempt, run_id, created_at } = run;
  const row = { id, message_id, session_key, engine, status: "running", attempt, run_id, created_at };
  return insertRow("bee_run", row);
}

/** running -> completed or failed, once. */
export function finishBeeRun(id: string, end: BeeRunEnd, now: number): Statement[] {
  const { status, reason, reply, task_count, error, failure } = end;
  const set = buildSet({ status, reason, reply, task_count, error, failure, completed_at: now });
  const usage = buildUsageSet("bee_run", end.usage);
  return guard(
    `update bee_run set ${set.sql}, ${usage.sql} where id = ? and status = 'running'`,
    [...set.args, ...usage.args, id],
    WAKEUP.budget,
  );
}

/** Finds the rights of a coordinator's run token. Null when the run has ended (reliability SCP-5). */
export function findBeeGrant(db: Database, id: string, attempt: number): Promise<RunBinding | null> {
  return db.first<RunBinding>(
    `select id as execution_id, attempt, '' as worker_id, '' as task_id, session_key, message_id,
      coalesce((select ${MESSAGE_DEPTH} from inbound_message where inbound_message.id = message_id), 0) - 1 as depth
    from bee_run
    where id = ? and attempt = ? and status = 'running'`,
    [id, attempt],
  );
}

/** Returns the status of a coordinator's run, or null. Null also outside the conversation that the caller is bound to. */
export function findBeeRunStatus(
  db: Database,
  id: string,
  boundTo: string | null,
): Promise<"running" | "completed" | "failed" | null> {
  return db.readValue<"running" | "completed" | "failed">(
    "select status from bee_run where id = ? and (? is null or session_key = ?)",
    [id, boundTo, boundTo],
  );
}

export const BEE_RUNS = {
  table: "bee_run",
  json: buildJsonSql("bee_run", beeRunSchema, { usage: buildJsonSql("bee_run", usageSchema) }),
  texts: ["reason", "reply", "error"],
};

interface OpenBeeRun {
  execution_id: string;
  run_id: string;
  since: number;
}

export function listOpenBeeRuns(db: Database): Promise<OpenBeeRun[]> {
  return db.read<OpenBeeRun>(
    "select id as execution_id, run_id, created_at as since from bee_run where status = 'running'",
  );
}

/** Lists the coordinator's runs, newest first, only those of the conversation that the caller is bound to. */
export function listBeeRuns(
  db: Database,
  boundTo: string | null,
  { limit, cursor }: { limit: number; cursor?: string | undefined },
): Promise<Listing<BeeRun>> {
  const where: Where = { conditions: [], args: [] };
  limitToConversation(where, "bee_run.session_key", boundTo);
  return list(db, { ...BEE_RUNS, where }, { page: 1, page_size: limit, cursor });
}
