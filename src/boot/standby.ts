import { type Clock, sleep } from "../base/clock.ts";
import { logger } from "../base/log.ts";
import { Database, isOutOfReach } from "../store/db/database.ts";
import { isReachable } from "../store/events/health.ts";
import { type DatabaseOwner, WEDGED } from "./database_owner.ts";

const log = logger("database");

const LOOK_MS = 500;
const REPORT_MS = 5_000;
const OPEN_AGAIN_MS = 1_000;

/** It was told to end while it waited: no fault. */
export class StandbyEnded extends Error {
  constructor() {
    super("the standby ended");
    this.name = "StandbyEnded";
  }
}

/** As Database.open(), again and again while the server cannot be reached: a standby outlives that. Throws StandbyEnded. */
export async function openPatiently(
  url: string,
  authToken: string,
  { clock, ended }: { clock: Clock; ended: AbortSignal },
): Promise<Database> {
  let said = false;
  while (!ended.aborted) {
    try {
      return await Database.open(url, authToken);
    } catch (error) {
      if (!said) log.warning("The standby waits for the database server: {error}", { error });
      said = true;
      await sleep(clock, OPEN_AGAIN_MS, ended);
    }
  }
  throw new StandbyEnded();
}

/** What a standby waits with. */
interface Waiting {
  db: Database;
  clock: Clock;
  ended: AbortSignal;
  /** Throws when this one could not serve although nobody else does. */
  check: () => Promise<void>;
}

/**
 * Waits until nobody holds the database, and takes it: at most LOOK_MS after the holder lets go, and when it was silent for 30 s.
 * Outages of the database server are waited for. Throws StandbyEnded, and what `check` throws.
 */
export async function takeWhenFree(
  owner: DatabaseOwner,
  { db, clock, ended, check }: Waiting,
): Promise<void> {
  let reported = -Infinity;
  let fault = "";
  while (!ended.aborted) {
    try {
      if (await owner.tryTake()) return;
      if (clock.monotonic() - reported >= REPORT_MS) {
        await check();
        await owner.wait();
        reported = clock.monotonic();
      }
      if (fault !== "") log.info("The standby reaches the database again");
      fault = "";
    } catch (error) {
      if (!isOutOfReach(error)) throw error;
      const words = await isReachable(db) ? WEDGED : "the database server does not answer";
      if (words !== fault) log.error("The standby cannot take over: {fault}", { fault: words });
      fault = words;
    }
    await sleep(clock, LOOK_MS, ended);
  }
  await owner.leave();
  throw new StandbyEnded();
}
