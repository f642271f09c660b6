import { hostname } from "node:os";
import type { Clock } from "../base/clock.ts";
import { newId } from "../base/id.ts";
import { logger } from "../base/log.ts";
import { writeWhole } from "../base/whole_file.ts";
import { type Database, TAKEN_OVER } from "../store/db/database.ts";
import { isReachable } from "../store/events/health.ts";
import {
  beatOwner,
  beatStandby,
  fenceOf,
  findOwner,
  type FoundStandby,
  leaveStandby,
  mayHaveOwner,
  type Owner,
  releaseDatabase,
  takeDatabase,
} from "../store/db/database_owner.ts";
import { LockedError } from "./lock.ts";

const log = logger("database");

const BEAT_MS = 5_000;
const LOOK_MS = 1_000;
// Longer than a pause of the machine or the network, and short enough for another machine to take over soon.
const STALE_MS = 30_000;
// An owner that knows of a standby has ended its runs before that one may take over: at the latest this long after it was last heard of it begins.
const GIVE_UP_MS = 20_000;
// Earlier, a report that is slow would do.
const GIVE_UP_MIN_MS = 12_000;
// What ending runs takes beside their stop_grace.
const ENDING_MS = 5_000;
// A standby that is restarted or out of reach now may be back before the owner hears of it.
const STANDBY_KNOWN_MS = 3_600_000;
const MISSES_TO_TELL = 2;

/** What is wrong when a database server answers what is read, and nothing that is written, and its cure (facts, libSQL server 1). */
export const WEDGED =
  "the database server reads and does not write any more: restart it (sqld), and start it with --max-concurrent-connections 4";

/** The longest stop_grace with which runs are ended before a standby may take over: GIVE_UP_MIN_MS and ENDING_MS before STALE_MS. */
export const STANDBY_STOP_GRACE_MAX_MS = 13_000;

/** Whether the database is another server's by now, or may be, for this reason. */
export function isLost(reason: string): boolean {
  return reason === TAKEN_OVER || reason === UNHEARD;
}

/** Why a server ends its runs although nobody told it to. */
const UNHEARD = "it has not been heard of for so long that its standby may take over";

/** How a database is owned. */
interface OwnerOptions {
  clock: Clock;
  /** Where this data directory keeps the id under which it owns databases; it is made when it is missing. */
  idPath: string;
  /** How long the end of a run may take: limits.stop_grace. */
  stopGraceMs: number;
}

/**
 * Reserves a database on a libSQL server for this process, as the lock of the data directory reserves a file: a second
 * server is refused or waits, and a server that was silent until another one took over cannot write any more (decision 0021).
 */
export class DatabaseOwner {
  /** What is wrong with the database server, or null. */
  fault: string | null = null;
  /** Who waits to take over, as of the last heartbeat. One that waited within the last hour counts as if it did. */
  standbys: FoundStandby[] = [];
  readonly #db: Database;
  readonly #clock: Clock;
  readonly #who: Owner;
  readonly #stopGraceMs: number;
  #heardAt = { monotonic: 0, wall: 0 };
  /** When a standby was last known; monotonic. */
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

  /** The owner that this data directory is. */
  static async open(db: Database, options: OwnerOptions): Promise<DatabaseOwner> {
    return new DatabaseOwner(db, options, await ownId(options.idPath));
  }

  /** Takes the database, unless it is new and has no table for that. Throws LockedError that names the owner. */
  async take(): Promise<void> {
    if (await this.tryTake()) return;
    const { host, pid, silent_ms } = await findOwner(this.#db) ?? { host: "?", pid: 0, silent_ms: 0 };
    throw new LockedError(
      `Cannot use this database: another server is running on it (pid ${pid} on ${host}, heard of ${
        Math.round(silent_ms / 1_000)
      } s ago); stop that one or set another database.url. If it is gone for good, start again in ${
        Math.max(1, Math.ceil((STALE_MS - silent_ms) / 1_000))
      } s. To wait for it: svc serve --standby`,
    );
  }

  /** Takes the database when nobody holds it. Returns whether it did. */
  async tryTake(): Promise<boolean> {
    if (!await mayHaveOwner(this.#db)) return true;
    const owner = await findOwner(this.#db);
    if (owner !== null && owner.id !== this.#who.id && owner.silent_ms <= STALE_MS) return false;
    this.#hear();
    if (!await takeDatabase(this.#db, this.#who, STALE_MS)) return false;
    if (owner !== null && owner.id === this.#who.id && owner.host !== this.#who.host) {
      log.warning(
        "This data directory held the database from {host} {seconds} s ago. If that machine still runs, one of the two is a " +
          "copy: stop it and remove owner.id there",
        { host: owner.host, seconds: Math.round(owner.silent_ms / 1_000) },
      );
    }
    return true;
  }

  /** Takes it for good, when the schema exists: from now on only this process can write. */
  async fence(): Promise<void> {
    await this.take();
    this.#db.fenceOff(fenceOf(this.#who.fence));
    await this.#db.write([leaveStandby(this.#who.id)]);
  }

  /** Tells the owner that this one waits. */
  async wait(): Promise<void> {
    await beatStandby(this.#db, this.#who);
  }

  /** It waits no longer. */
  async leave(): Promise<void> {
    await this.#db.write([leaveStandby(this.#who.id)]).catch(() => {});
  }

  /**
   * Reports from now on that the owner is alive. Where it cannot, and a standby was waiting, it stops writing in time to have no
   * run left when that one takes over.
   */
  start(): void {
    void this.#beat();
    this.#look();
  }

  async #beat(): Promise<void> {
    await this.#report();
    this.#after(BEAT_MS, () => void this.#beat());
  }

  async #report(): Promise<void> {
    if (this.#reporting || this.#released || this.#db.broken !== null) return;
    this.#reporting = true;
    const sent = this.#now();
    try {
      this.#know(await beatOwner(this.#db), sent.monotonic);
      this.#heardAt = sent;
      this.#misses = 0;
      if (this.fault !== null) log.info("The database server writes again");
      this.fault = null;
    } catch (error) {
      if (this.#db.broken !== null) return;
      log.warning("Cannot tell the database's server that this service is alive: {error}", { error });
      await this.#miss();
    } finally {
      this.#reporting = false;
    }
  }

  #know(standbys: FoundStandby[], at: number): void {
    this.standbys = standbys;
    if (standbys.length === 0) return;
    if (this.#standbyAt === -Infinity && this.#stopGraceMs > STANDBY_STOP_GRACE_MAX_MS) {
      log.error(
        "A standby waits, and limits.stop_grace is {seconds} s: runs that do not end when they are told to may go on while it takes over. " +
          "Set it to at most {most} s and restart",
        { seconds: this.#stopGraceMs / 1_000, most: STANDBY_STOP_GRACE_MAX_MS / 1_000 },
      );
    }
    this.#standbyAt = at;
  }

  async #miss(): Promise<void> {
    if (++this.#misses < MISSES_TO_TELL) return;
    const before = this.fault;
    this.fault = await isReachable(this.#db) ? WEDGED : "the database server does not answer";
    if (this.fault !== before) log.error("Nothing can be stored: {fault}", { fault: this.fault });
  }

  // The monotonic clock stands still while a machine sleeps; after a sleep one report says whether it is still the owner.
  #look(): void {
    const { monotonic, wall } = this.#now();
    // As of the last report: one that was being restarted then may be back.
    const known = this.#heardAt.monotonic - this.#standbyAt <= STANDBY_KNOWN_MS;
    if (known && this.#db.broken === null) {
      if (monotonic - this.#heardAt.monotonic >= this.#giveUpMs) this.#db.break(UNHEARD);
      else if (wall - this.#heardAt.wall >= this.#giveUpMs) void this.#afterSleep();
    }
    this.#after(LOOK_MS, () => this.#look());
  }

  async #afterSleep(): Promise<void> {
    if (this.#reporting) return;
    await this.#report();
    if (this.#now().wall - this.#heardAt.wall >= this.#giveUpMs) this.#db.break(UNHEARD);
  }

  get #giveUpMs(): number {
    return Math.max(GIVE_UP_MIN_MS, Math.min(GIVE_UP_MS, STALE_MS - this.#stopGraceMs - ENDING_MS));
  }

  #after(ms: number, call: () => void): void {
    if (this.#released) return;
    const cancel = this.#clock.after(ms, () => {
      this.#cancels = this.#cancels.filter((one) => one !== cancel);
      call();
    });
    this.#cancels.push(cancel);
  }

  #hear(): void {
    this.#heardAt = this.#now();
  }

  #now(): { monotonic: number; wall: number } {
    return { monotonic: this.#clock.monotonic(), wall: this.#clock.now() };
  }

  /** Gives the database up, so that another server may start at once. Call it after the last write. */
  async release(): Promise<void> {
    this.#released = true;
    for (const cancel of this.#cancels) cancel();
    // After a while others take it anyway.
    await this.#db.write([releaseDatabase(this.#who.fence)]).catch(() => {});
  }
}

async function ownId(path: string): Promise<string> {
  const found = (await Deno.readTextFile(path).catch(() => "")).trim();
  if (found !== "") return found;
  const id = newId();
  await writeWhole(path, `${id}\n`);
  return id;
}
