import type { Clock } from "../../base/clock.ts";
import { createLogger } from "../../base/log.ts";
import type { Database } from "./database.ts";

const log = createLogger("database");

const CHECK_INTERVAL_MS = 1_000;
// A larger WAL file means that a reader keeps SQLite from moving it into the database file.
const WAL_ALARM_BYTES = 64 * 1024 * 1024;

/** State of the database's files. Opening them would make SQLite lose its locks (facts, libSQL 3). */
interface FileState {
  /** Inode and creation time. The inode alone is not enough, because a new file may reuse the inode of a deleted file. */
  database: string | null;
  wal: string | null;
  walBytes: number;
}

/**
 * Checks every second that the open files of the database are still in place. After a deletion or a move, SQLite continues to
 * write without an error into files that have no name (facts, libSQL 25). Then the watch stops all writes and moves
 * committed data into the database file if that file still exists (reliability DUR-6).
 */
export class DatabaseWatch {
  readonly #db: Database;
  readonly #clock: Clock;
  readonly #path: string;
  readonly #alarmBytes: number;
  #cancel: () => void = () => {};
  #first: FileState | null = null;
  #isAlarmed = false;
  #stopped = false;
  walBytes = 0;

  constructor(db: Database, path: string, clock: Clock, alarmBytes: number = WAL_ALARM_BYTES) {
    this.#db = db;
    this.#path = path;
    this.#clock = clock;
    this.#alarmBytes = alarmBytes;
  }

  start(): void {
    void this.check();
  }

  stop(): void {
    this.#stopped = true;
    this.#cancel();
  }

  async check(): Promise<void> {
    this.#cancel();
    const seen = await readFileState(this.#path);
    if (this.#stopped) return;
    this.walBytes = seen.walBytes;
    const first = this.#first ??= seen;
    // The first write creates the WAL file.
    if (first.wal === null) first.wal = seen.wal;
    if (seen.database !== first.database) {
      return await this.#stopWrites("its file was moved or replaced", false);
    }
    if (seen.wal !== first.wal) {
      return await this.#stopWrites("its -wal file was deleted or replaced", seen.wal === null);
    }
    this.#checkWalLength(seen.walBytes);
    this.#cancel = this.#clock.after(CHECK_INTERVAL_MS, () => void this.check());
  }

  async #stopWrites(reason: string, mayWriteBack: boolean): Promise<void> {
    this.#db.break(reason);
    // Our connection still has the deleted WAL file open. If no new WAL file exists, its content can be written to the database file.
    if (!mayWriteBack) return;
    try {
      await this.#db.checkpoint();
      log.error("Committed data was written back into {path}. Nothing is lost", {
        path: this.#path,
      });
    } catch (error) {
      log.error("Cannot write committed data back: {error}", { error });
    }
  }

  #checkWalLength(bytes: number): void {
    const long = bytes > this.#alarmBytes;
    if (long && !this.#isAlarmed) {
      log.error(
        "The file {path}-wal has grown to {mb} MB because another program keeps the database open for reading. Stop that program",
        { path: this.#path, mb: Math.round(bytes / 1_000_000) },
      );
    } else if (!long && this.#isAlarmed) log.info("The file {path}-wal is short again", { path: this.#path });
    this.#isAlarmed = long;
  }
}

async function readFileState(path: string): Promise<FileState> {
  const [database, wal] = await Promise.all(
    [Deno.stat(path), Deno.stat(`${path}-wal`)].map((one) => one.catch(() => null)),
  );
  return { database: formatIdentity(database), wal: formatIdentity(wal), walBytes: wal?.size ?? 0 };
}

function formatIdentity(info: Deno.FileInfo | null | undefined): string | null {
  return info ? `${info.dev}:${info.ino}:${info.birthtime?.getTime() ?? ""}` : null;
}
