// Ends runs whose server has died; run/ending.ts decides what happens to the task
import type { Clock } from "../base/clock.ts";
import { USAGE_UNKNOWN } from "../domain/execution.ts";
import { sweep } from "../engine/isolation.ts";
import { logger } from "../base/log.ts";
import { finishBeeRun, listOpenBeeRuns } from "../store/bee_run.ts";
import type { Database, Statement } from "../store/database.ts";
import { type ExecutionEnd, listOpenExecutions, type OpenExecution } from "../store/execution.ts";
import { findTask } from "../store/task.ts";
import { BELL, type Bells } from "../base/bells.ts";
import { endRun, type Rules } from "../run/ending.ts";
import { endOfGate, storeGateEnd } from "../run/gate_end.ts";
import { listOpenGates } from "../store/occurrence.ts";
import { Stage } from "./loop.ts";

const log = logger("rescuer");

/** What the rescuer works with. */
interface RescuerOptions {
  db: Database;
  clock: Clock;
  bells: Bells;
  rules: Rules;
  /** Ids of the executions in progress in this process. */
  running: () => string[];
}

const POLL_MS = 30_000;
// A claim is stored shortly before the executor knows the run.
const CLAIM_GRACE_MS = 10_000;

/**
 * Finds open runs that no server runs: after a start all open ones, later as a safety net. It kills their processes
 * first, so that a task never has two live runs (reliability CHD-3, DSP-1).
 */
export class Rescuer {
  readonly stage: Stage;
  readonly #options: RescuerOptions;

  constructor(options: RescuerOptions) {
    this.#options = options;
    const { clock, bells } = options;
    const step = async () => {
      await this.rescue(CLAIM_GRACE_MS);
      return Infinity;
    };
    this.stage = new Stage({ name: "rescuer", bell: BELL.rescuer, clock, bells, pollMs: POLL_MS, step });
  }

  /** Rescues every open run that is older than `graceMs` and not ours. Returns how many. */
  async rescue(graceMs = 0): Promise<number> {
    const { db, clock, running } = this.#options;
    const own = new Set(running());
    const oldest = clock.now() - graceMs;
    const lost = (await listOpenExecutions(db)).filter((run) =>
      !own.has(run.execution_id) && (graceMs === 0 || run.created_at <= oldest)
    );
    await this.#rescueGates(graceMs, own);
    if (lost.length === 0) return 0;
    const ended = await sweep(new Set(lost.map((run) => run.run_id)));
    log.warning("{count} runs were lost with their server; {ended} of their processes were still there", {
      count: lost.length,
      ended,
    });
    for (const run of lost) await db.write(await this.#statements(run));
    return lost.length;
  }

  // A gate is asked again; a task whose gate takes the service with it ends after some attempts, as its runs would (reliability CMD-1).
  async #rescueGates(graceMs: number, own: ReadonlySet<string>): Promise<void> {
    const { db, clock, rules } = this.#options;
    const oldest = clock.now() - graceMs;
    const lost = (await listOpenGates(db)).filter((gate) =>
      !own.has(gate.execution_id) && (graceMs === 0 || gate.since <= oldest)
    );
    if (lost.length === 0) return;
    const ended = await sweep(new Set(lost.map((gate) => gate.run_id)));
    log.warning("{count} gates were lost with their server; {ended} of their processes were still there", {
      count: lost.length,
      ended,
    });
    for (const gate of lost) {
      const now = clock.now();
      const verdict = { kind: "lost" as const, attempt: gate.attempt };
      const statements = endOfGate(gate, verdict, await findTask(db, gate.task_id), rules, now);
      await storeGateEnd(db, gate, statements, now);
    }
  }

  /** Ends the coordinator's runs that a dead server left open. Their messages are routed again. */
  async rescueBee(): Promise<void> {
    const { db, clock } = this.#options;
    const open = await listOpenBeeRuns(db);
    await sweep(new Set(open.map((run) => run.run_id).filter((id) => id !== "")));
    const end = {
      status: "failed" as const,
      reason: "",
      reply: "",
      task_count: 0,
      error: "the service was stopped in the middle",
      failure: "server_lost" as const,
      usage: USAGE_UNKNOWN,
    };
    for (const run of open) await db.write(finishBeeRun(run.id, end, clock.now()));
  }

  async #statements(run: OpenExecution): Promise<Statement[]> {
    const { db, clock, rules } = this.#options;
    const cancelled = run.cancelled_by !== "" || run.task_status === "cancelled";
    const end: ExecutionEnd = {
      status: "failed",
      session_id: run.session_id,
      result: "",
      error: cancelled ? "the run was cancelled" : "the service died while this was running",
      failure: cancelled ? "cancelled" : "server_lost",
      exit_code: null,
      usage: USAGE_UNKNOWN,
    };
    return endRun(run, end, await findTask(db, run.task_id), rules, clock.now());
  }
}
