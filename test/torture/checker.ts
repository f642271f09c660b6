// Checks the invariants of a data directory after kills of its server (reliability I1 to I9).
import { Buffer } from "node:buffer";
import { join } from "node:path";
import { findMarked } from "../../src/engine/process/isolation.ts";
import { RUNNER_STOPPED, STOPPED } from "../../src/run/ending.ts";
import { Database, inspect, type Value } from "../../src/store/db/database.ts";
import { findBrokenCounters } from "../harness/model/counters.ts";

/** The acknowledgments of clients, and the agents' inputs. */
export interface Evidence {
  dataDir: string;
  /** Ids of acknowledged messages and tasks, and paths of acknowledged uploads. */
  messages?: Iterable<string>;
  tasks?: Iterable<string>;
  uploads?: Iterable<string>;
  /** Contents that were sent, possibly repeatedly, under one idempotency key: each may exist at most once. */
  once?: Iterable<string>;
  /** Contents that were sent again without a key after a lost response: each may exist twice. */
  atMostTwice?: Iterable<string>;
  /** The ledger of the fake agents. */
  agentLedger?: string;
  maxAttempts: number;
  /** Texts that must not be in any log or row. */
  secrets?: string[];
  /** Files outside the data directory that are searched for secrets, too. */
  alsoSearched?: string[];
}

/** Checks the invariants that hold at any moment, also right after a SIGKILL. Returns the violations. */
export async function checkAtAnyMoment(dataDir: string): Promise<string[]> {
  const path = join(dataDir, "svc.db");
  const faults = (await inspect(path)).map((fault) => `I7: ${fault}`);
  await using db = await Database.open(`file:${path}`);
  return [...faults, ...await findBrokenRows(db, HALF_STATES), ...await findBrokenCounters(db)];
}

/** Checks all invariants of a server that finished all work and then stopped. */
export async function checkAtRest(evidence: Evidence): Promise<string[]> {
  const { dataDir, agentLedger } = evidence;
  const faults = await checkAtAnyMoment(dataDir);
  await using db = await Database.open(`file:${join(dataDir, "svc.db")}`);
  faults.push(...await findBrokenRows(db, AT_REST, evidence.maxAttempts), ...await findLost(db, evidence));
  const runs = await db.read<{ run_id: string }>(
    "select run_id from execution union select run_id from bee_run",
  );
  const alive = await findMarked(new Set(runs.map((row) => row.run_id).filter((id) => id !== "")));
  if (alive.length > 0) faults.push(`I8: processes of ended runs are alive: ${alive.join(", ")}`);
  for (const path of evidence.uploads ?? []) {
    const known = await db.first("select 1 as one from upload where path = ?", [path]);
    const there = await Deno.stat(path).then((info) => info.isFile, () => false);
    if (known === null || !there) faults.push(`I1: the upload ${path} is gone`);
  }
  if (agentLedger !== undefined) {
    const lines = (await Deno.readTextFile(agentLedger).catch(() => "")).split("\n");
    // No task runs twice at the same time [DSP-1].
    for (const line of lines) if (line.startsWith("OVERLAP")) faults.push(`I3: ${line}`);
  }
  faults.push(
    ...await findLeaks(dataDir, evidence.secrets ?? [], evidence.alsoSearched ?? []),
    ...await findLeftovers(dataDir),
  );
  return faults;
}

type Rule = [words: string, sql: string];

/** Each query finds rows that must not exist. */
const HALF_STATES: Rule[] = [
  [
    "a running task has not exactly one open execution",
    `select id from task where status = 'running' and (
      select count(*) from execution where task_id = task.id and id = task.execution_id
        and status in ('pending', 'running')) <> 1`,
  ],
  [
    "an open execution belongs to a task that is neither running nor cancelled",
    `select execution.id from execution join task on task.id = task_id
    where execution.status in ('pending', 'running') and task.status not in ('running', 'cancelled')`,
  ],
  [
    "an execution has only a status or only a time of its end",
    `select id from execution where (status in ('completed', 'failed')) <> (completed_at is not null)`,
  ],
  [
    "a run has a reply before its end",
    `select outbound_message.id from outbound_message join execution on execution.id = execution_id
    where source_type = 'worker' and execution.status in ('pending', 'running')
      and outbound_message.content = execution.result`,
  ],
  [
    "an ended run of a conversation has neither a reply nor a retry",
    `select execution.id from execution join task on task.id = task_id
    where execution.status in ('completed', 'failed') and task.execution_id = execution.id
      and task.status in ('completed', 'failed')
      and task.session_key in (select 'local:' || id from chat_session)
      and execution.id not in (select execution_id from outbound_message where execution_id is not null)`,
  ],
  [
    "AFT-1: a run started before a parent of its task had ended",
    `select execution.id from execution join task_parent on task_parent.task_id = execution.task_id
    where ended_at is null or ended_at > execution.created_at`,
  ],
  [
    "AFT-1: the number of open parents is wrong",
    `select id from task
    where open_parents <> (select count(*) from task_parent where task_id = task.id and task_parent.status = '')`,
  ],
  [
    "AFT-1: a task waits although its parent has ended",
    `select task_id as id from task_parent join task as parent on parent.id = parent_id
    where task_parent.status = '' and parent.status in ('completed', 'failed', 'cancelled')
      and coalesce(parent.execution_id, '') not in (select id from execution where status in ('pending', 'running'))`,
  ],
  [
    "AFT-1: a task waits although a parent has failed",
    `select task.id from task join task_parent on task_id = task.id
    where task.status = 'pending' and after_when = 'success' and task_parent.status in ('failed', 'cancelled')`,
  ],
  // An answer goes to the run that asked while it is running, and becomes a task afterwards.
  [
    "a routed message has neither a task nor a reply",
    `select id from inbound_message where status = 'bee_processed'
      and not exists (select 1 from task where message_id = inbound_message.id)
      and not exists (select 1 from outbound_message where message_id = inbound_message.id)
      and not exists (select 1 from question where answered_in = inbound_message.id)`,
  ],
  [
    "a message was merged into a missing one",
    `select id from inbound_message as part where status = 'merged'
    and not exists (select 1 from inbound_message where id = part.merged_into)`,
  ],
];

const AT_REST: Rule[] = [
  ["I2: a message has no end", "select id from inbound_message where status in ('received', 'feeding')"],
  [
    "I2: a task has no end",
    `select id from task where status in ('pending', 'running')
    or status = 'scheduled' and type = 'countdown'`,
  ],
  ["I6: an execution is open", "select id from execution where status in ('pending', 'running')"],
  ["I6: the coordinator's run is open", "select id from bee_run where status = 'running'"],
  [
    "I6: a reply is not sent",
    "select id from outbound_message where status = 'failed' and due_at is not null",
  ],
  // An orderly stop does not count the attempt, and each occurrence of a schedule counts from one.
  [
    "I4: attempts do not increase",
    `select later.id from execution as later
    join task on task.id = later.task_id and task.type <> 'scheduled'
    join execution as earlier on earlier.task_id = later.task_id and earlier.id < later.id
    where later.attempt <= earlier.attempt and earlier.error not in ('${STOPPED}', '${RUNNER_STOPPED}')`,
  ],
  ["I4: more attempts than allowed", "select id from execution where attempt > ?"],
  [
    "I5: a task has more than one completed run",
    `select task.id from task where type <> 'scheduled' and (
      select count(*) from execution where task_id = task.id and status = 'completed') > 1`,
  ],
  [
    "I5: a task's outcome is not that of its latest run",
    `select task.id from task join execution on execution.id = (select max(id) from execution where task_id = task.id)
    where task.type <> 'scheduled' and (execution_id <> execution.id
      or task.status in ('completed', 'failed') and task.status <> execution.status)`,
  ],
];

async function findBrokenRows(db: Database, rules: Rule[], maxAttempts = 0): Promise<string[]> {
  const faults: string[] = [];
  for (const [words, sql] of rules) {
    const args: Value[] = sql.includes("?") ? [maxAttempts] : [];
    const rows = await db.read<{ id: string }>(sql, args);
    if (rows.length > 0) faults.push(`${words}: ${rows.map((row) => row.id).slice(0, 5).join(", ")}`);
  }
  return faults;
}

async function findLost(db: Database, evidence: Evidence): Promise<string[]> {
  const faults: string[] = [];
  for (const [table, ids] of [["inbound_message", evidence.messages], ["task", evidence.tasks]] as const) {
    for (const id of ids ?? []) {
      const row = await db.first(`select 1 as one from ${table} where id = ?`, [id]);
      if (row === null) faults.push(`I1: ${table} ${id} was acknowledged and is gone`);
    }
  }
  const limits = [[evidence.once ?? [], 1], [evidence.atMostTwice ?? [], 2]] as const;
  const counts = await countContents(
    db,
    Math.max(0, ...limits.flatMap(([contents]) => [...contents].map(countBytes))),
  );
  for (const [contents, most] of limits) {
    for (const content of contents) {
      const count = counts.get(content) ?? 0;
      if (count > most) faults.push(`DUR-2: ${JSON.stringify(content)} is there ${count} times`);
    }
  }
  return faults;
}

/**
 * Counts each content of at most `maxBytes`. A hostile client's contents are larger, and may be gigabytes.
 */
async function countContents(db: Database, maxBytes: number): Promise<Map<string, number>> {
  const rows = await db.read<{ content: string; count: number }>(
    `select content, count(*) as count from (
      select content from inbound_message where octet_length(content) <= ?1
      union all
      select instruction from task where octet_length(instruction) <= ?1 and created_by <> 'bee')
    group by content`,
    [maxBytes],
  );
  return new Map(rows.map(({ content, count }) => [content, count]));
}

function countBytes(text: string): number {
  return new TextEncoder().encode(text).length;
}

/** Finds secrets in logs and rows (I9), except in the key's own file and the password's hash. */
async function findLeaks(dataDir: string, secrets: string[], more: string[]): Promise<string[]> {
  const faults: string[] = [];
  for (const path of [...await Array.fromAsync(walk(dataDir)), ...more]) {
    if (path.endsWith("secret.key") || path.endsWith("-shm")) continue;
    for (const secret of secrets) {
      // No secret is in a log, in the database or in a backup [SEC-2].
      if (await containsText(path, secret)) faults.push(`I9: a secret is in ${path}`);
    }
  }
  return faults;
}

/** Finds files and rows that exist only during work. */
async function findLeftovers(dataDir: string): Promise<string[]> {
  const faults: string[] = [];
  for await (const path of walk(dataDir)) {
    if (/\.part(\/|$)/.test(path)) faults.push(`half a file is left: ${path}`);
  }
  // A kill can leave a file without a row, which retention deletes after a day. A row without a file must not
  // exist.
  const db = await Database.open(`file:${join(dataDir, "svc.db")}`);
  const known = new Set((await db.read<{ path: string }>("select path from upload")).map((row) => row.path));
  await db.close();
  for (const path of known) {
    if (!await Deno.stat(path).then(() => true, () => false)) {
      faults.push(`an upload's file is gone: ${path}`);
    }
  }
  return faults;
}

/** Returns whether a file of any size contains these words. */
async function containsText(path: string, words: string): Promise<boolean> {
  const wanted = Buffer.from(words);
  // Freeing a connection of this process now would delete its -wal.
  using file = await Deno.open(path).catch(() => null);
  if (file === null) return false;
  let before = Buffer.alloc(0);
  for await (const chunk of file.readable) {
    const bytes = Buffer.concat([before, chunk]);
    if (bytes.includes(wanted)) return true;
    before = bytes.subarray(Math.max(0, bytes.length - wanted.length + 1));
  }
  return false;
}

/** Copies a data directory, changes its database, and passes the copy to `check`. */
export async function withChangedCopy(
  dataDir: string,
  statements: string[],
  check: (copy: string) => Promise<void>,
): Promise<void> {
  const copy = `${dataDir}-changed`;
  await new Deno.Command("cp", { args: ["-r", dataDir, copy] }).output();
  const db = await Database.open(`file:${join(copy, "svc.db")}`);
  for (const sql of statements) await db.write([{ sql, args: [] }]);
  await db.close();
  await check(copy);
  await Deno.remove(copy, { recursive: true });
}

/** Lists every file below a folder. Throws if the folder does not exist. */
export async function* walk(folder: string): AsyncGenerator<string> {
  for await (const entry of Deno.readDir(folder)) {
    const path = join(folder, entry.name);
    if (entry.isDirectory) yield* walk(path);
    else if (entry.isFile) yield path;
  }
}
