// pending -> running on runners, many tasks in one commit
import { allEnded } from "../base/all_ended.ts";
import { faultPoint } from "../base/fault_point.ts";
import { logger } from "../base/log.ts";
import type { Database } from "../store/database.ts";
import type { NewExecution } from "../store/execution.ts";
import { listInstructions } from "../store/instant_run.ts";
import { startRemoteRuns } from "../store/remote_run.ts";
import type { WaitingTask } from "../store/task_queue.ts";
import type { Chosen } from "./heads.ts";
import { INSTANT_MAX_BYTES } from "./instants.ts";
import type { Placement, Spot } from "./placement.ts";

const log = logger("dispatcher");

// Their instructions are read at once, and so are the rows written: others wait meanwhile.
const STARTS_AT_ONCE = 64;

/** What starts on runners need of the dispatcher. */
interface RemoteStartsOptions {
  db: Database;
  placement: Placement;
  executionOf: (task: WaitingTask, instruction: string, now: number) => NewExecution;
  /** Claims one by itself; answers whether it did. */
  claimOne: (chosen: Chosen, spot: Spot, now: number) => Promise<boolean>;
}

/** A task that is about to go to a runner. */
type Placed = Chosen & { spot: Spot };

/** Whether nothing is unusual about it; whatever is takes the long way. */
function isPlain({ task, spot }: Chosen): boolean {
  const { type, held, bytes } = task;
  return spot !== null && type === "immediate" && held === "" && bytes <= INSTANT_MAX_BYTES;
}

/**
 * Gives tasks to claims that wait: what is plain in few commits, and each of the rest by itself. Answers whether all of them were still
 * there: one may have gone while others were looked at, and another one may take its task.
 */
export async function startOnRunners(
  options: RemoteStartsOptions,
  chosen: readonly Placed[],
  now: number,
): Promise<boolean> {
  const open = chosen.filter(({ spot }) => options.placement.isOpen(spot));
  const plain = open.filter(isPlain);
  const given: Promise<void>[] = open.filter((one) => !plain.includes(one)).map((one) =>
    give(options, one, now)
  );
  for (let at = 0; at < plain.length; at += STARTS_AT_ONCE) {
    given.push(...giveAll(options, plain.slice(at, at + STARTS_AT_ONCE), now));
  }
  await allEnded(given);
  return open.length === chosen.length;
}

function give({ placement, claimOne }: RemoteStartsOptions, one: Placed, now: number): Promise<void> {
  return placement.give(one.spot, claimOne(one, one.spot, now));
}

// Where the commit of all is lost, each has its own: one of them stood in the way, or its runner did.
function giveAll(options: RemoteStartsOptions, chosen: readonly Placed[], now: number): Promise<void>[] {
  const { placement, claimOne } = options;
  if (chosen.length === 1) return chosen.map((one) => give(options, one, now));
  const stored = store(options, chosen, now).catch((error) => {
    log.warning("Cannot start tasks in one commit, and starts them one by one: {error}", { error });
    return false;
  });
  return chosen.map((one) =>
    placement.give(one.spot, stored.then((won) => won || claimOne(one, one.spot, now)))
  );
}

async function store(
  { db, placement, executionOf }: RemoteStartsOptions,
  chosen: readonly Placed[],
  now: number,
): Promise<boolean> {
  const instructions = await listInstructions(db, chosen.map(({ task }) => task.id));
  const runs = chosen.map(({ task, spot, reservation }) => {
    const execution = executionOf(task, instructions.get(task.id) ?? "", now);
    return { execution, ...placement.leaseOf(spot, execution), reservation };
  });
  const { won } = await db.write(startRemoteRuns(runs, now));
  if (won) faultPoint("claim.post");
  return won;
}
