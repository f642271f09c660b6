import { WAKEUP } from "../../base/wakeups.ts";
import type { Database, Statement } from "./database.ts";

/** Names of the settings that the service stores. */
type SettingName =
  | "database_id"
  /** Of the signing key, for servers that share a database. */
  | "key_fingerprint"
  /** "1" once a directory of files is marked as this database's. */
  | "files_marked"
  | "last_backup_at"
  /** "1" from a restore with --paused until an operator resumes. */
  | "schedules_paused"
  /** Up to when the backups of the configuration have been made, Unix ms. */
  | "backup_schedule_at"
  /** Why the last backup of the configuration failed; "" when it did not. */
  | "backup_fault"
  /** Up to which event notices were told. */
  | "notices_cursor"
  /** Up to which message a platform had listened when a gap began that is not read yet; "" for none. */
  | `gap:${string}`;

/** The value of a setting, or null. */
export async function findSetting(db: Database, name: SettingName): Promise<string | null> {
  return (await db.first<{ value: string }>("select value from setting where name = ?", [name]))?.value ??
    null;
}

/** Stores a setting. */
export function saveSetting(name: SettingName, value: string): Statement {
  return {
    sql:
      "insert into setting (name, value) values (?, ?) on conflict (name) do update set value = excluded.value",
    args: [name, value],
  };
}

/** SQL that is true while a restore's pause holds: nothing fires by itself (contract 8.16). */
export const SCHEDULES_ARE_PAUSED = "exists (select 1 from setting where name = 'schedules_paused')";

/** Ends that pause. */
export function resumeSchedules(): Statement {
  return { sql: "delete from setting where name = 'schedules_paused'", args: [], wakeup: WAKEUP.scheduler };
}
