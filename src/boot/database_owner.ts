import { hostname } from "node:os";
import type { Clock } from "../base/clock.ts";
import { LockedError } from "./lock.ts";
import { logger } from "../base/log.ts";
import type { Database } from "../store/database.ts";
import {
  beatOwner,
  fenceOf,
  findOwner,
  mayHaveOwner,
  releaseDatabase,
  takeDatabase,
} from "../store/owner.ts";

const log = logger("database");

const BEAT_MS = 10_000;
// Longer than a pause of the machine or the network, and short enough for another machine to take over soon.
const STALE_MS = 30_000;

/**
 * Reserves a database on a libSQL server for this process, as the lock of the data directory reserves a file: a second
 * server is refused, and a server that was silent until another one took over cannot write any more (decision 0060).
 */
export class DatabaseOwner {
  readonly #db: Database;
  readonly #clock: Clock;
  readonly #id: string;
  #cancel: () => void = () => {};
  #released = false;

  private constructor(db: Database, clock: Clock, id: string) {
    this.#db = db;
    this.#clock = clock;
    this.#id = id;
  }

  /**
   * Takes the database. `lock` is the lock file of the data directory: its identity is unique, and the same after a
   * restart. Throws LockedError that names the owner.
   */
  static async take(db: Database, lock: Deno.FsFile, clock: Clock): Promise<DatabaseOwner> {
    const { ino, birthtime } = await lock.stat();
    const owner = new DatabaseOwner(db, clock, `${ino}-${birthtime?.getTime() ?? 0}`);
    // A new database has no table for it yet.
    if (await mayHaveOwner(db)) await owner.#take();
    return owner;
  }

  /** Takes it for good, when the schema exists: from now on only the owner can write. */
  async fence(): Promise<void> {
    await this.#take();
    this.#db.fenceOff(fenceOf(this.#id));
  }

  async #take(): Promise<void> {
    const who = { id: this.#id, host: hostname(), pid: Deno.pid };
    if (await takeDatabase(this.#db, who, STALE_MS)) return;
    const { host, pid, silent_ms } = await findOwner(this.#db) ?? { host: "?", pid: 0, silent_ms: 0 };
    throw new LockedError(
      `Cannot use this database: another server is running on it (pid ${pid} on ${host}, heard of ${
        Math.round(silent_ms / 1_000)
      } s ago); stop that one or set another database.url. If it is gone for good, start again in ${
        Math.max(1, Math.ceil((STALE_MS - silent_ms) / 1_000))
      } s`,
    );
  }

  /** Reports from now on that the owner is alive. */
  start(): void {
    this.#cancel = this.#clock.after(BEAT_MS, () => void this.#beat());
  }

  async #beat(): Promise<void> {
    try {
      await this.#db.write([beatOwner()]);
    } catch (error) {
      if (this.#db.broken !== null) return;
      log.warning("Cannot tell the database's server that this service is alive: {error}", { error });
    }
    if (!this.#released) this.start();
  }

  /** Gives the database up, so that another server may start at once. Call it after the last write. */
  async release(): Promise<void> {
    this.#released = true;
    this.#cancel();
    // After a while others take it anyway.
    await this.#db.write([releaseDatabase(this.#id)]).catch(() => {});
  }
}
