// OpenClaw stores its schedules in SQLite. This opens a copy of that file, never a database of the service.
import { DatabaseSync } from "node:sqlite";
import { join } from "node:path";
import { FileFault, parseStrict, type SourceDir } from "./files.ts";
import { OBJECTS_MAX } from "./imported.ts";

const DATABASE = "state/openclaw.sqlite";
const DATABASE_MAX_BYTES = 512 * 1024 * 1024;
const JOB_MAX_BYTES = 1024 * 1024;

export interface CronTable {
  /** The jobs, unchecked. */
  jobs: unknown[];
  /** Jobs that are too large. */
  tooLarge: number;
  /** Paired senders by channel. */
  senders: Map<string, string[]>;
}

/** Reads the jobs and paired senders from a copy. Throws FileFault. */
export async function readCronTable(dir: SourceDir): Promise<CronTable> {
  const none = { jobs: [], tooLarge: 0, senders: new Map() };
  const file = await dir.findFile(DATABASE, DATABASE_MAX_BYTES);
  if (file === null) return none;
  const copy = await Deno.makeTempDir({ prefix: "svc-import-" });
  try {
    await Deno.copyFile(file, join(copy, "db"));
    // The latest changes are in this file until a checkpoint.
    const log = await dir.findFile(`${DATABASE}-wal`, DATABASE_MAX_BYTES);
    if (log !== null) await Deno.copyFile(log, join(copy, "db-wal"));
    return readCopy(join(copy, "db"));
  } catch (error) {
    throw error instanceof FileFault ? error : new FileFault("it is not a readable SQLite database");
  } finally {
    await Deno.remove(copy, { recursive: true });
  }
}

function readCopy(path: string): CronTable {
  const db = new DatabaseSync(path);
  try {
    db.exec("pragma trusted_schema = off");
    const jobs: unknown[] = [];
    let tooLarge = 0;
    if (isTable(db, "cron_jobs", "job_json")) {
      const rows = db.prepare(
        "select case when length(job_json) <= ? then job_json end as job from cron_jobs limit ?",
      ).all(JOB_MAX_BYTES, OBJECTS_MAX + 1);
      for (const { job } of rows) {
        if (typeof job === "string") jobs.push(parseStrict(job));
        else tooLarge++;
      }
    }
    const senders: [string, string][] = isTable(db, "channel_pairing_allow_entries", "entry")
      ? db.prepare(
        "select channel_key, entry from channel_pairing_allow_entries where length(entry) <= 200 limit ?",
      ).all(OBJECTS_MAX).map(({ channel_key, entry }) => [String(channel_key), String(entry)])
      : [];
    const byChannel = Map.groupBy(senders, ([channel]) => channel);
    return {
      jobs,
      tooLarge,
      senders: new Map([...byChannel].map(([channel, pairs]) => [channel, pairs.map(([, entry]) => entry)])),
    };
  } finally {
    db.close();
  }
}

// A view or a computed column could run without end, so only plain columns of plain tables count.
function isTable(db: DatabaseSync, table: string, column: string): boolean {
  const found = db.prepare(
    "select 1 from sqlite_master where name = ? and type = 'table' and sql like 'create table %' " +
      "and exists (select 1 from pragma_table_info(?) where name = ?)",
  ).get(table, table, column);
  return found !== undefined;
}
