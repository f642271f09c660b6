import { type Clock, sleep } from "../base/clock.ts";
import { createLogger } from "../base/log.ts";
import { Database, isOutOfReach } from "../store/db/database.ts";
import { isReachable } from "../store/events/health.ts";
import { type DatabaseOwner, WEDGED } from "./database_owner.ts";

const log = createLogger("database");

const POLL_MS = 500;
const REPORT_MS = 5_000;
const REOPEN_MS = 1_000;

/** A signal ended the wait, which is no fault. */
export class StandbyEnded extends Error {
  constructor() {
    super("the standby ended");
    this.name = "StandbyEnded";
  }
}

/** Opens the database, and retries while its server is unreachable. Throws StandbyEnded. */
export async function openPatiently(
  url: string,
  authToken: string,
  { clock, ended }: { clock: Clock; ended: AbortSignal },
): Promise<Database> {
  let isLogged = false;
  while (!ended.aborted) {
    try {
      return await Database.open(url, authToken);
    } catch (error) {
      if (!isLogged) {
        log.warning("Cannot reach the database server: {error}. The standby waits for it.", { error });
      }
      isLogged = true;
      await sleep(clock, REOPEN_MS, ended);
    }
  }
  throw new StandbyEnded();
}

interface WaitOptions {
  db: Database;
  clock: Clock;
  ended: AbortSignal;
  /** Throws when this server could not serve the database. */
  check: () => Promise<void>;
}

/**
 * Waits until the database has no owner and takes it, at most POLL_MS after a release, or after 30 s of silence. Outages of the database
 * server extend the wait. Throws StandbyEnded, and errors of `check`.
 */
export async function takeWhenFree(
  owner: DatabaseOwner,
  { db, clock, ended, check }: WaitOptions,
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
      if (words !== fault) log.error("Cannot take over: {fault}", { fault: words });
      fault = words;
    }
    await sleep(clock, POLL_MS, ended);
  }
  await owner.leave();
  throw new StandbyEnded();
}
