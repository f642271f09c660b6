// Passes on the words of people to the agent of a run: queued -> sent -> delivered (contract 23)
import type { Clock } from "../../base/clock.ts";
import { faultPoint } from "../../base/fault_point.ts";
import { createLogger } from "../../base/log.ts";
import { getSteerWakeup, type Wakeups } from "../../base/wakeups.ts";
import { pickRunKeys, type RunIdentity } from "../../domain/call/run_identity.ts";
import type { Steering } from "../../engine/engine.ts";
import type { Database } from "../../store/db/database.ts";
import { listQueuedSteers, markSteerDelivered, markSteerSent, returnSteer } from "../../store/work/steer.ts";

const log = createLogger("executor");
const POLL_MS = 1_000;

interface SteeringOptions {
  db: Database;
  clock: Clock;
  wakeups: Wakeups;
}

type Deliver = (id: string, words: string) => void;

/**
 * Creates the steering of a run. Words are marked as sent before they are written, so that none is written twice without a mark. Words
 * that never reach the agent become a task at the end of the run.
 */
export function createSteering(options: SteeringOptions, run: RunIdentity): Steering {
  let target: { deliver: Deliver; ended: AbortController } | null = null;
  return {
    setTarget(deliver) {
      target?.ended.abort();
      target = deliver === null ? null : { deliver, ended: new AbortController() };
      if (target !== null) void passOn(options, run, target.deliver, target.ended.signal);
    },
    onAnswer: (id, taken) => void storeAnswer(options, run, id, taken),
  };
}

async function passOn(
  { db, clock, wakeups }: SteeringOptions,
  { execution_id }: RunIdentity,
  deliver: Deliver,
  ended: AbortSignal,
): Promise<void> {
  const wakeup = wakeups.listen(getSteerWakeup(execution_id));
  try {
    while (!ended.aborted) {
      for (const { id, content } of await listQueuedSteers(db, execution_id)) {
        if (ended.aborted || !(await db.write(markSteerSent(id))).won) break;
        faultPoint("steer.marked");
        if (ended.aborted) await db.write([returnSteer(id)]);
        else deliver(id, content);
        faultPoint("steer.written");
      }
      await wakeup.next(clock, POLL_MS, ended);
    }
  } catch (error) {
    log.warning("Cannot pass on words to execution {id}: {error}", { id: execution_id, error });
  } finally {
    wakeup.close();
  }
}

async function storeAnswer(
  { db, clock }: SteeringOptions,
  run: RunIdentity,
  id: string,
  taken: boolean,
): Promise<void> {
  try {
    await db.write(taken ? markSteerDelivered(id, pickRunKeys(run), clock.now()) : [returnSteer(id)]);
  } catch (error) {
    log.warning("Cannot note that words reached execution {id}: {error}", { id: run.execution_id, error });
  }
}
