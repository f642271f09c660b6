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
// Longer than a pause of the machine or the network, shorter than anybody wants to wait for another machine to take over.
const STALE_MS = 30_000;

/**
 * Holds a database on a libSQL server for this process, as the lock of the data directory holds a file: a second server
 * on it is refused, and one that was silent for so long that another took over writes nothing any more (contract 4).
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
   * Takes the database. `lock` is the file that the data directory is held by: it is nobody else's, and the same after a
   * restart. Throws LockedError that names the holder.
   */
  static async take(db: Database, lock: Deno.FsFile, clock: Clock): Promise<DatabaseOwner> {
    const { ino, birthtime } = await lock.stat();
    const owner = new DatabaseOwner(db, clock, `${ino}-${birthtime?.getTime() ?? 0}`);
    // A new database has no place for it yet.
    if (await mayHaveOwner(db)) await owner.#take();
    return owner;
  }

  /** Takes it for good, with the schema in place: from now on nothing is written that is not the owner's. */
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

  /** Says from now on that it is alive. */
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

  /** Lets go, so that another server may start at once. Call it behind the last write. */
  async release(): Promise<void> {
    this.#released = true;
    this.#cancel();
    // Whoever cannot let go is taken for gone after a while.
    await this.#db.write([releaseDatabase(this.#id)]).catch(() => {});
  }
}
