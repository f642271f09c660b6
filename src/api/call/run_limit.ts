import { LRUCache } from "lru-cache";
import { conflict } from "../../domain/call/error.ts";
import { RUN_APPROVALS_MAX } from "../../domain/work/approval.ts";
import { RUN_QUESTIONS_MAX } from "../../domain/work/question.ts";
import { pickRunKeys } from "../../domain/call/run_identity.ts";
import type { RunBinding } from "../../domain/call/scope.ts";
import { createLogger } from "../../base/log.ts";
import { buildCacheOptions } from "../../base/memoize.ts";
import { record } from "../../store/events/journal.ts";
import type { Call } from "./call.ts";
import type { Clock } from "../../base/clock.ts";
import type { Database } from "../../store/db/database.ts";

/** Limits of one run, far above the needs of a task but low enough to end a loop early (reliability SCP-7). */
export const RUN_TASKS_MAX = 100;
export const RUN_MESSAGES_MAX = 500;
export const RUN_MEMORY_MAX_BYTES = 1024 * 1024;
export const RUN_WORKERS_MAX = 100;
/** Requests that change something: each is a commit, and most add a journal row. */
export const RUN_CHANGES_MAX = 5_000;

type LimitName =
  | "tasks"
  | "messages"
  | "questions"
  | "approvals"
  | "memory_bytes"
  | "workers"
  | "changes"
  | "chain_depth";

const MOST: Record<Exclude<LimitName, "chain_depth">, number> = {
  tasks: RUN_TASKS_MAX,
  messages: RUN_MESSAGES_MAX,
  questions: RUN_QUESTIONS_MAX,
  approvals: RUN_APPROVALS_MAX,
  memory_bytes: RUN_MEMORY_MAX_BYTES,
  workers: RUN_WORKERS_MAX,
  changes: RUN_CHANGES_MAX,
};

const RUNS_REMEMBERED_MAX = 20_000;

const log = createLogger("limits");

/** Counts the objects that runs create, in memory only: no run survives a restart of the service. */
export class RunLimits {
  readonly #db: Database;
  readonly #clock: Clock;
  readonly #made = new LRUCache<string, Map<LimitName, number>>(buildCacheOptions(RUNS_REMEMBERED_MAX));
  readonly #recorded = new LRUCache<string, true>(buildCacheOptions(RUNS_REMEMBERED_MAX));

  constructor(db: Database, clock: Clock) {
    this.#db = db;
    this.#clock = clock;
  }

  /** Counts `count` more objects of a run. Throws `conflict` above the limit. People have no limit. */
  async take(call: Pick<Call, "caller">, thing: keyof typeof MOST, count = 1): Promise<void> {
    const { run } = call.caller;
    if (run === null) return;
    const made = this.#getCounts(run);
    const total = (made.get(thing) ?? 0) + count;
    if (total <= MOST[thing]) return void made.set(thing, total);
    await this.recordLimit(call, thing, MOST[thing]);
    throw conflict(
      `Cannot continue: one run can create at most ${MOST[thing]} ${
        thing.replace("_", " ")
      }. Leave the rest to a person.`,
    );
  }

  /** Records that a run reached a limit, once per limit. */
  async recordLimit({ caller }: Pick<Call, "caller">, thing: LimitName, most: number): Promise<void> {
    const { run, subject } = caller;
    const key = `${run?.execution_id} ${thing}`;
    if (run === null || this.#recorded.has(key)) return;
    this.#recorded.set(key, true);
    log.warning("The run {execution_id} of {subject} has met its limit of {most} {thing}", {
      execution_id: run.execution_id,
      subject,
      most,
      thing,
    });
    await this.#db.write([record(this.#clock.now(), {
      kind: "execution.limited",
      ...pickRunKeys(run),
      actor: subject,
      data: { thing, most },
    })]);
  }

  #getCounts(run: RunBinding): Map<LimitName, number> {
    const key = `${run.execution_id} ${run.attempt}`;
    const known = this.#made.get(key) ?? new Map<LimitName, number>();
    this.#made.set(key, known);
    return known;
  }
}
