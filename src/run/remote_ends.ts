// running -> completed: runs of runners that were over at once, all that one request tells in one commit
import { cutToBytes } from "../base/bytes.ts";
import type { Bells } from "../base/bells.ts";
import type { Clock } from "../base/clock.ts";
import { faultPoint } from "../base/fault_point.ts";
import { logger } from "../base/log.ts";
import type { Steps } from "../base/steps.ts";
import type { Waits } from "../base/waits.ts";
import type { RunEnd, RunEnds } from "../domain/runner.ts";
import type { RunnerBinding } from "../domain/scope.ts";
import { cutResult } from "../engine/result.ts";
import { LOG_BEYOND_MAX_BYTES } from "../files/log_copy.ts";
import type { Database } from "../store/database.ts";
import { endRemoteRuns } from "../store/remote_end.ts";
import { listShortRemoteRuns, type RemoteRunRow } from "../store/remote_run.ts";
import { tellEnds } from "./instant.ts";
import { endOf } from "./recorder.ts";
import { claimOf } from "./remote_claims.ts";

const log = logger("runner");

/** What these ends are stored with. */
interface RemoteEndsOptions {
  db: Database;
  clock: Clock;
  bells: Bells;
  waits: Waits;
  steps: Steps;
  maxLogBytes: number;
  logBell: (executionId: string) => string;
}

/** Stores ends of runs that nothing is unusual about. */
export class RemoteEnds {
  readonly #options: RemoteEndsOptions;

  constructor(options: RemoteEndsOptions) {
    this.#options = options;
  }

  /** Stores what is plain of these ends in one commit, and answers which; where that cannot be, none. Each of the others is told by itself (contract 18.6). */
  async store(binding: RunnerBinding, ends: RunEnds["ends"]): Promise<string[]> {
    const { db, clock, bells, waits, steps, maxLogBytes, logBell } = this.#options;
    const now = clock.now();
    const rows = await listShortRemoteRuns(db, binding.id, ends.map(({ id }) => id));
    const told = ends.flatMap(({ id, ...end }) => {
      const row = rows.get(id);
      return row === undefined ? [] : plainEnd(row, end, now) ?? [];
    });
    if (told.length === 0) return [];
    faultPoint("outcome.pre-commit");
    const runs = told.map(({ claim: { execution }, log, ...rest }) => ({
      ...{ execution, ...rest },
      log: cutToBytes(log, maxLogBytes + LOG_BEYOND_MAX_BYTES),
    }));
    const { won } = await db.write([...endRemoteRuns(runs, now), ...tellEnds(told, now)]);
    if (!won) {
      log.info("One of {count} runs did not end like the others; each is told by itself", {
        count: told.length,
      });
      return [];
    }
    faultPoint("outcome.post-commit");
    const ids = told.map(({ claim }) => claim.execution.execution_id);
    for (const id of ids) {
      bells.ring(logBell(id));
      waits.forget(id);
      steps.forget(id);
    }
    return ids;
  }
}

/** The end of a run that said nothing before it and was completed; null for any other, which takes the long way. */
function plainEnd(row: RemoteRunRow, end: RunEnd, now: number) {
  const { outcome: { verify, ...outcome }, ran_ms, log: text, epoch } = end;
  if (!isOpen(row, epoch) || verify !== undefined || ran_ms === null || text === undefined) return null;
  if (end.interruption !== null || !isUneventful(outcome)) return null;
  const told = endOf(row.session_key, { ...outcome, text: cutResult(outcome.text) }, null);
  const started_at = Math.max(row.created_at, Math.trunc(now - ran_ms));
  return { claim: claimOf(row), epoch, end: { ...told, started_at }, log: text };
}

function isOpen({ type, epoch, lease_until, started_at, events }: RemoteRunRow, of: number): boolean {
  return type === "immediate" && epoch === of && (lease_until ?? 0) > 0 && started_at === null &&
    events === 0;
}

function isUneventful({ status, failure, error, sessionId, usage, reset }: RunEnd["outcome"]): boolean {
  return status === "completed" && failure === "" && error === "" && sessionId === "" && reset === null &&
    Object.values(usage).every((count) => count === null);
}
