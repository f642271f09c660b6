import type { Clock } from "../../base/clock.ts";
import { logger } from "../../base/log.ts";
import type { Database } from "./database.ts";

const log = logger("database");

const LOOK_MS = 1_000;
/** A WAL file larger than this means that a reader keeps it from being moved into the database file. */
const WAL_ALARM_BYTES = 64 * 1024 * 1024;

/** What the file system says about the database's files. They are not opened: SQLite would lose its locks (facts, libSQL 3). */
interface Seen {
  /** Inode and creation time: a new file may get the inode of one that was just deleted. */
  database: string | null;
  wal: string | null;
  walBytes: number;
}

/**
 * Checks every second that the database's files are still the ones that are open. When they were deleted or moved, SQLite
 * goes on writing without an error into files that nobody will find again (facts, libSQL 25). So writes are stopped, and
 * what was committed is moved into the database file as long as that is there (reliability DUR-6).
 */
export class DatabaseWatch {
  readonly #db: Database;
  readonly #clock: Clock;
  readonly #path: string;
  readonly #alarmBytes: number;
  #cancel: () => void = () => {};
  #first: Seen | null = null;
  #alarmed = false;
  #stopped = false;
  /** Size of the WAL file at the last check. */
  walBytes = 0;

  constructor(db: Database, path: string, clock: Clock, alarmBytes: number = WAL_ALARM_BYTES) {
    this.#db = db;
    this.#path = path;
    this.#clock = clock;
    this.#alarmBytes = alarmBytes;
  }

  /** Starts to watch the files that are there now. */
  start(): void {
    void this.look();
  }

  stop(): void {
    this.#stopped = true;
    this.#cancel();
  }

  /** One check. */
  async look(): Promise<void> {
    this.#cancel();
    const seen = await see(this.#path);
    if (this.#stopped) return;
    this.walBytes = seen.walBytes;
    const first = this.#first ??= seen;
    // A new database gets its WAL file with its first write.
    if (first.wal === null) first.wal = seen.wal;
    if (seen.database !== first.database) return await this.#lost("its file was moved or replaced", false);
    if (seen.wal !== first.wal) {
      return await this.#lost("its -wal file was deleted or replaced", seen.wal === null);
    }
    this.#watchLength(seen.walBytes);
    this.#cancel = this.#clock.after(LOOK_MS, () => void this.look());
  }

  async #lost(what: string, mayWriteBack: boolean): Promise<void> {
    this.#db.break(what);
    // Our connection still has the deleted WAL file open. Unless there is a new one, its content can go into the database file.
    if (!mayWriteBack) return;
    try {
      await this.#db.checkpoint();
      log.error("What was committed has been written back into {path}: nothing is lost", {
        path: this.#path,
      });
    } catch (error) {
      log.error("What was committed could not be written back: {error}", { error });
    }
  }

  #watchLength(bytes: number): void {
    const long = bytes > this.#alarmBytes;
    if (long && !this.#alarmed) {
      log.error(
        "The file {path}-wal has grown to {mb} MB: some program keeps the database open for reading; end it",
        {
          path: this.#path,
          mb: Math.round(bytes / 1_000_000),
        },
      );
    } else if (!long && this.#alarmed) log.info("The file {path}-wal is short again", { path: this.#path });
    this.#alarmed = long;
  }
}

async function see(path: string): Promise<Seen> {
  const [database, wal] = await Promise.all(
    [Deno.stat(path), Deno.stat(`${path}-wal`)].map((one) => one.catch(() => null)),
  );
  return { database: identity(database), wal: identity(wal), walBytes: wal?.size ?? 0 };
}

function identity(info: Deno.FileInfo | null | undefined): string | null {
  return info ? `${info.dev}:${info.ino}:${info.birthtime?.getTime() ?? ""}` : null;
}
