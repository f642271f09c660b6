// pending -> completed in one commit: what an engine inside this process did is over before anybody could ask about it
import type { Clock } from "../base/clock.ts";
import { faultPoint } from "../base/fault_point.ts";
import { keysOf } from "../domain/run_identity.ts";
import type { Database, Statement } from "../store/database.ts";
import type { ExecutionEnd } from "../store/execution.ts";
import { type InstantRun, storeInstantRuns } from "../store/instant_run.ts";
import { type Happened, recordAll } from "../store/journal.ts";
import type { Claim } from "./claim.ts";
import { closing } from "./ending.ts";

/** A claim that nobody has stored, and what its run counts for. */
export interface InstantClaim extends Claim {
  targets: readonly string[];
}

/** How its run ended. */
export interface InstantEnd {
  claim: InstantClaim;
  end: ExecutionEnd & { started_at: number };
  /** The text of its log. */
  log: string;
}

/** What is told of an end. */
type Told = Pick<InstantEnd, "end"> & { claim: Claim };

/**
 * Stores runs from their beginning to their end, all or none. The answer is false, and then nothing of them is left, when one of
 * the tasks was not pending any more.
 */
export async function storeInstants(
  { db, clock }: { db: Database; clock: Clock },
  ends: readonly InstantEnd[],
): Promise<boolean> {
  const now = clock.now();
  const runs = ends.map(({ claim: { execution, targets }, end, log }): InstantRun => ({
    ...{ execution, targets },
    ...{ end, log },
  }));
  faultPoint("outcome.pre-commit");
  const { won } = await db.write([...storeInstantRuns(runs, now), ...tellEnds(ends, now)]);
  if (won) { for (const point of ["claim.post", "outcome.post-commit"] as const) faultPoint(point); }
  return won;
}

/** What journal and conversations have of immediate tasks that were completed, none of which had said that it started. */
export function tellEnds(ends: readonly Told[], now: number): Statement[] {
  return [
    recordAll(ends.flatMap((one) => eventsOf(one, now))),
    ...ends.flatMap((one) => wordsOf(one, now)),
  ];
}

function eventsOf({ claim: { execution }, end }: Told, now: number): Happened[] {
  const keys = keysOf(execution);
  return [
    [end.started_at, { kind: "execution.started", ...keys }],
    [now, { kind: "execution.completed", ...keys, data: { failure: "", exit_code: end.exit_code } }],
    [now, { kind: "task.completed", ...keys }],
  ];
}

function wordsOf({ claim: { execution, task }, end }: Told, now: number): Statement[] {
  return closing(execution, end, { type: "immediate", deliver_to: task.deliver_to }, now);
}
