// Ends runs whose server or runner has died. run/ending.ts decides what happens to the task.
import { USAGE_UNKNOWN } from "../../domain/work/execution.ts";
import { sweep } from "../../engine/process/isolation.ts";
import { createLogger } from "../../base/log.ts";
import type { RecentActivity } from "../../base/recent_activity.ts";
import type { HumanWaits } from "../../base/human_waits.ts";
import { finishBeeRun, listOpenBeeRuns } from "../../store/chat/bee_run.ts";
import { isOutOfReach, type Statement } from "../../store/db/database.ts";
import { type ExecutionEnd, listOpenExecutions, type OpenExecution } from "../../store/work/execution.ts";
import { expireLease, findFirstLeaseEnd } from "../../store/workers/remote_run.ts";
import { findTask } from "../../store/work/task.ts";
import { WAKEUP } from "../../base/wakeups.ts";
import { endRun, type Rules, RUNNER_LOST } from "../../run/ending.ts";
import { buildGateEnd, storeGateEnd } from "../../run/local/gate_end.ts";
import { listOpenGates } from "../../store/work/occurrence.ts";
import { Stage, type StageServices } from "../stage/stage.ts";

const log = createLogger("rescuer");

interface RescuerOptions extends StageServices {
  rules: Rules;
  /** In-memory state of runs on runners. It is dropped when a run is lost. */
  waits: HumanWaits;
  steps: RecentActivity;
  /** Ids of all runs in progress in this process, the coordinator's included. */
  running: () => string[];
}

const SERVICE_LOST = "the service died while this was running";
const POLL_MS = 30_000;
// A claim is stored shortly before the executor knows the run.
const CLAIM_GRACE_MS = 10_000;

/**
 * Ends open runs that no server runs: all open runs after a start, and as a safety net later. It kills their processes first, so that a
 * task never has two live runs (reliability CHD-3, DSP-1).
 */
export class Rescuer {
  readonly stage: Stage;
  readonly #options: RescuerOptions;
  /** A run could not be ended in this round, so the next round waits for the poll. */
  #isStuck = false;

  constructor(options: RescuerOptions) {
    this.#options = options;
    const { clock } = options;
    const step = async () => {
      this.#isStuck = false;
      await this.rescue(CLAIM_GRACE_MS);
      await this.rescueBee(CLAIM_GRACE_MS);
      const leaseEnd = await findFirstLeaseEnd(options.db);
      return leaseEnd === null || this.#isStuck ? Infinity : Math.max(0, leaseEnd - clock.now());
    };
    this.stage = new Stage(options, { name: "rescuer", wakeup: WAKEUP.rescuer, pollMs: POLL_MS, step });
  }

  /** Ends every open run that is older than `graceMs` and not in progress here. Returns their number. */
  async rescue(graceMs = 0): Promise<number> {
    const { db, clock, waits, steps } = this.#options;
    const isLost = this.#createLostCheck(graceMs);
    const open = await listOpenExecutions(db, clock.now());
    // A run on a runner is lost when its lease has expired, whatever its age.
    const lost = open.filter((run) => run.remote === 1 || isLost(run));
    await this.#rescueGates(graceMs);
    if (lost.length === 0) return 0;
    // A runner ends its own leftover processes.
    const here = lost.filter((run) => run.remote === 0);
    const ended = await sweep(new Set(here.map((run) => run.run_id)));
    log.warning(
      "{count} runs were lost with their server or runner; {ended} of their processes were still here",
      {
        count: lost.length,
        ended,
      },
    );
    for (const run of lost) {
      try {
        await db.write(await this.#buildEnd(run));
        waits.forget(run.execution_id);
        steps.forget(run.execution_id);
      } catch (error) {
        if (isOutOfReach(error)) throw error;
        // A row that cannot be ended must block neither later rows nor the start.
        this.#isStuck = true;
        log.error("Cannot end the run {id}, which was lost: {error}", { id: run.execution_id, error });
      }
    }
    return lost.length;
  }

  // Read before the rows, so that a run that ends in between is not lost.
  #createLostCheck(graceMs: number): (run: { execution_id: string; since: number }) => boolean {
    const { clock, running } = this.#options;
    const own = new Set(running());
    const oldest = graceMs === 0 ? Infinity : clock.now() - graceMs;
    return ({ execution_id, since }) => !own.has(execution_id) && since <= oldest;
  }

  // Asks a lost gate again. A task whose gate crashes the service ends after its attempts, as its runs would (reliability CMD-1).
  async #rescueGates(graceMs: number): Promise<void> {
    const { db, clock, rules } = this.#options;
    const isLost = this.#createLostCheck(graceMs);
    const lost = (await listOpenGates(db)).filter(isLost);
    if (lost.length === 0) return;
    const ended = await sweep(new Set(lost.map((gate) => gate.run_id)));
    log.warning("{count} gates were lost with their server; {ended} of their processes were still there", {
      count: lost.length,
      ended,
    });
    for (const gate of lost) {
      const now = clock.now();
      const verdict = { kind: "lost" as const, attempt: gate.attempt };
      const statements = buildGateEnd(gate, verdict, await findTask(db, gate.task_id), rules, now);
      await storeGateEnd(db, gate, statements, now);
    }
  }

  /** Ends lost runs of the coordinator, which budgets count while they are open. Their messages are routed again (contract 14). */
  async rescueBee(graceMs = 0): Promise<void> {
    const { db, clock } = this.#options;
    const isLost = this.#createLostCheck(graceMs);
    const lost = (await listOpenBeeRuns(db)).filter(isLost);
    if (lost.length === 0) return;
    await sweep(new Set(lost.map((run) => run.run_id).filter((id) => id !== "")));
    const end = {
      status: "failed" as const,
      reason: "",
      reply: "",
      task_count: 0,
      error: "the service was stopped during the run",
      failure: "server_lost" as const,
      usage: USAGE_UNKNOWN,
    };
    for (const run of lost) await db.write(finishBeeRun(run.execution_id, end, clock.now()));
  }

  async #buildEnd(run: OpenExecution): Promise<Statement[]> {
    const { db, clock, rules } = this.#options;
    const cancelled = run.cancelled_by !== "" || run.task_status === "cancelled";
    const end: ExecutionEnd = {
      status: "failed",
      session_id: run.session_id,
      result: "",
      error: cancelled ? "the run was cancelled" : run.remote === 1 ? RUNNER_LOST : SERVICE_LOST,
      failure: cancelled ? "cancelled" : "server_lost",
      exit_code: null,
      usage: USAGE_UNKNOWN,
    };
    const now = clock.now();
    return [
      ...(run.remote === 1 ? expireLease(run.execution_id, now) : []),
      ...endRun(run, end, await findTask(db, run.task_id), rules, now),
    ];
  }
}
