import { hostname } from "node:os";
import type { Clock } from "../base/clock.ts";
import { createId } from "../base/id.ts";
import { createLogger } from "../base/log.ts";
import { writeWhole } from "../base/whole_file.ts";
import { type Database, TAKEN_OVER } from "../store/db/database.ts";
import { isReachable } from "../store/events/health.ts";
import {
  buildFence,
  deleteStandby,
  findOwner,
  hasOwnerTable,
  type Owner,
  releaseDatabase,
  type StandbyStatus,
  storeOwnerHeartbeat,
  storeStandbyHeartbeat,
  takeDatabase,
} from "../store/db/database_owner.ts";
import { LockedError } from "./data_directory.ts";

const log = createLogger("database");

const BEAT_MS = 5_000;
const CHECK_MS = 1_000;
// A silence of this length exceeds the usual pauses of a machine or network, but still allows a quick takeover.
const STALE_MS = 30_000;
// If there is a standby, the owner must end its runs before the standby takes over. So it gives up at most this long after its last report.
const GIVE_UP_MS = 20_000;
// If the owner gave up earlier, one slow report would end all runs.
const GIVE_UP_MIN_MS = 12_000;
// Time to end runs in addition to their stop_grace.
const ENDING_MS = 5_000;
// If a standby restarts or loses its network, it may be back before the owner reads its report.
const STANDBY_KNOWN_MS = 3_600_000;
const MISSES_TO_REPORT = 2;

/** The fault of a database server that answers reads but not writes (facts, libSQL server 1). */
export const WEDGED =
  "the database server answers reads but no writes. Restart sqld with --max-concurrent-connections 4.";

/** The longest stop_grace with which runs end before a takeover: STALE_MS - GIVE_UP_MIN_MS - ENDING_MS. */
export const STANDBY_STOP_GRACE_MAX_MS = 13_000;

/** Whether another server may own the database now, given the reason of a stop. */
export function isLost(reason: string): boolean {
  return reason === TAKEN_OVER || reason === UNHEARD;
}

const UNHEARD = "its last report is so old that its standby may take over";

interface OwnerOptions {
  clock: Clock;
  /** File with the owner id of this data directory, created when it is missing. */
  idPath: string;
  /** How long a run may take to end: limits.stop_grace. */
  stopGraceMs: number;
}

/**
 * Reserves a database on a libSQL server for this process. A second server fails or waits. A server that was silent until a takeover cannot
 * write any more (decision 0021).
 */
export class DatabaseOwner {
  /** The fault of the database server, or null. */
  fault: string | null = null;
  /** The standbys at the last heartbeat, including those that waited within the last hour. */
  standbys: StandbyStatus[] = [];
  readonly #db: Database;
  readonly #clock: Clock;
  readonly #who: Owner;
  readonly #stopGraceMs: number;
  #reportedAt = { monotonic: 0, wall: 0 };
  /** When a standby was last known, in monotonic ms. */
  #standbyAt = -Infinity;
  #misses = 0;
  #reporting = false;
  #cancels: (() => void)[] = [];
  #released = false;

  private constructor(db: Database, { clock, stopGraceMs }: OwnerOptions, id: string) {
    this.#db = db;
    this.#clock = clock;
    this.#stopGraceMs = stopGraceMs;
    this.#who = { id, fence: crypto.randomUUID(), host: hostname(), pid: Deno.pid };
  }

  static async open(db: Database, options: OwnerOptions): Promise<DatabaseOwner> {
    return new DatabaseOwner(db, options, await ensureOwnerId(options.idPath));
  }

  /** Takes the database. A new database without the owner table needs no owner yet. Throws LockedError that names the owner. */
  async take(): Promise<void> {
    if (await this.tryTake()) return;
    const { host, pid, silent_ms } = await findOwner(this.#db) ?? { host: "?", pid: 0, silent_ms: 0 };
    throw new LockedError(
      `Cannot use this database: another server uses it (pid ${pid} on ${host}, last report ${
        Math.round(silent_ms / 1_000)
      } s ago). Stop that server or set another database.url. If it is gone permanently, start again in ${
        Math.max(1, Math.ceil((STALE_MS - silent_ms) / 1_000))
      } s. To wait for it, run svc serve --standby.`,
    );
  }

  /** Takes the database if it has no owner. Returns whether it succeeded. */
  async tryTake(): Promise<boolean> {
    if (!await hasOwnerTable(this.#db)) return true;
    const owner = await findOwner(this.#db);
    if (owner !== null && owner.id !== this.#who.id && owner.silent_ms <= STALE_MS) return false;
    this.#reportedAt = this.#now();
    if (!await takeDatabase(this.#db, this.#who, STALE_MS)) return false;
    if (owner !== null && owner.id === this.#who.id && owner.host !== this.#who.host) {
      log.warning(
        "This data directory owned the database from {host} {seconds} s ago. If that machine still runs, one of the directories " +
          "is a copy. Stop the copy and remove its owner.id.",
        { host: owner.host, seconds: Math.round(owner.silent_ms / 1_000) },
      );
    }
    return true;
  }

  /** Takes the database and lets only this process write. Requires the schema. */
  async fence(): Promise<void> {
    await this.take();
    this.#db.fenceOff(buildFence(this.#who.fence));
    await this.#db.write([deleteStandby(this.#who.id)]);
  }

  /** Reports this standby to the owner. */
  async wait(): Promise<void> {
    await storeStandbyHeartbeat(this.#db, this.#who);
  }

  /** Removes this standby. */
  async leave(): Promise<void> {
    await this.#db.write([deleteStandby(this.#who.id)]).catch(() => {});
  }

  /** Starts the reports. Stops writing in time to end all runs before the takeover. */
  start(): void {
    void this.#beat();
    this.#check();
  }

  async #beat(): Promise<void> {
    await this.#report();
    this.#schedule(BEAT_MS, () => void this.#beat());
  }

  async #report(): Promise<void> {
    if (this.#reporting || this.#released || this.#db.broken !== null) return;
    this.#reporting = true;
    const sent = this.#now();
    try {
      this.#setStandbys(await storeOwnerHeartbeat(this.#db), sent.monotonic);
      this.#reportedAt = sent;
      this.#misses = 0;
      if (this.fault !== null) log.info("The database server accepts writes again");
      this.fault = null;
    } catch (error) {
      if (this.#db.broken !== null) return;
      log.warning("Cannot report to the database server that this service is alive: {error}", { error });
      await this.#countMiss();
    } finally {
      this.#reporting = false;
    }
  }

  #setStandbys(standbys: StandbyStatus[], at: number): void {
    this.standbys = standbys;
    if (standbys.length === 0) return;
    if (this.#standbyAt === -Infinity && this.#stopGraceMs > STANDBY_STOP_GRACE_MAX_MS) {
      log.error(
        "Cannot end runs in time for the waiting standby: limits.stop_grace is {seconds} s, and slow runs may continue after the takeover. " +
          "Set it to at most {most} s and restart.",
        { seconds: this.#stopGraceMs / 1_000, most: STANDBY_STOP_GRACE_MAX_MS / 1_000 },
      );
    }
    this.#standbyAt = at;
  }

  async #countMiss(): Promise<void> {
    if (++this.#misses < MISSES_TO_REPORT) return;
    const before = this.fault;
    this.fault = await isReachable(this.#db) ? WEDGED : "the database server does not answer";
    if (this.fault !== before) log.error("Cannot store anything: {fault}", { fault: this.fault });
  }

  // The monotonic clock stops while a machine sleeps. After a sleep, one report checks the ownership.
  #check(): void {
    const { monotonic, wall } = this.#now();
    // Compares with the last report, because a standby that restarted since then may be back.
    const known = this.#reportedAt.monotonic - this.#standbyAt <= STANDBY_KNOWN_MS;
    if (known && this.#db.broken === null) {
      if (monotonic - this.#reportedAt.monotonic >= this.#giveUpMs) this.#db.break(UNHEARD);
      else if (wall - this.#reportedAt.wall >= this.#giveUpMs) void this.#checkAfterSleep();
    }
    this.#schedule(CHECK_MS, () => this.#check());
  }

  async #checkAfterSleep(): Promise<void> {
    if (this.#reporting) return;
    await this.#report();
    if (this.#now().wall - this.#reportedAt.wall >= this.#giveUpMs) this.#db.break(UNHEARD);
  }

  get #giveUpMs(): number {
    return Math.max(GIVE_UP_MIN_MS, Math.min(GIVE_UP_MS, STALE_MS - this.#stopGraceMs - ENDING_MS));
  }

  #schedule(ms: number, call: () => void): void {
    if (this.#released) return;
    const cancel = this.#clock.after(ms, () => {
      this.#cancels = this.#cancels.filter((one) => one !== cancel);
      call();
    });
    this.#cancels.push(cancel);
  }

  #now(): { monotonic: number; wall: number } {
    return { monotonic: this.#clock.monotonic(), wall: this.#clock.now() };
  }

  /** Releases the database for another server. Call it after the last write. */
  async release(): Promise<void> {
    this.#released = true;
    for (const cancel of this.#cancels) cancel();
    // Without this write another server takes the database after STALE_MS.
    await this.#db.write([releaseDatabase(this.#who.fence)]).catch(() => {});
  }
}

async function ensureOwnerId(path: string): Promise<string> {
  const found = (await Deno.readTextFile(path).catch(() => "")).trim();
  if (found !== "") return found;
  const id = createId();
  await writeWhole(path, `${id}\n`);
  return id;
}
