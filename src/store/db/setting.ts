import { WAKEUP } from "../../base/wakeups.ts";
import type { Database, Statement } from "./database.ts";

type SettingName =
  | "database_id"
  /** Fingerprint of the signing key, for servers that share a database, and of the latest rotation of a local one. */
  | "key_fingerprint"
  /** "1" once a file directory is marked as belonging to this database. */
  | "files_marked"
  | "last_backup_at"
  /** "1" after a restore with --paused until an operator resumes. */
  | "schedules_paused"
  /** The time of the last scheduled backup, Unix ms. */
  | "backup_schedule_at"
  /** The error of the last scheduled backup, "" after a success. */
  | "backup_fault"
  /** JSON text of isolation.default at the latest start. */
  | "isolation_default"
  /** The last journal event that was checked for notices. */
  | "notices_cursor"
  /** "1" while the configuration turns the search off. */
  | "search_off"
  /** The last journal event that was checked for devices. */
  | "device_cursor"
  /** JSON list of the inbox items that devices know. */
  | "device_inbox"
  /**
   * The last message of a platform before a gap that is not read yet, "" for none. Of a mailbox, the position after its last handled
   * mail, as JSON.
   */
  | `gap:${string}`
  /** JSON object from old to new ids of a platform's chats. */
  | `moved:${string}`
  /** JSON list of the latest albums of a platform that mention the service. */
  | `albums:${string}`;

export function findSetting(db: Database, name: SettingName): Promise<string | null> {
  return db.readValue<string>("select value from setting where name = ?", [name]);
}

export function storeSetting(name: SettingName, value: string): Statement {
  return {
    sql:
      "insert into setting (name, value) values (?, ?) on conflict (name) do update set value = excluded.value",
    args: [name, value],
  };
}

/** SQL that is true while a restore has paused all schedules (contract 8.16). */
export const SCHEDULES_ARE_PAUSED = "exists (select 1 from setting where name = 'schedules_paused')";

export function resumeSchedules(): Statement {
  return { sql: "delete from setting where name = 'schedules_paused'", args: [], wakeup: WAKEUP.scheduler };
}

/** SQL of a worker's isolation as JSON text: its own, or the default of the configuration. */
export const ISOLATION_EFFECTIVE = `iif(worker.isolation = 'null', coalesce((
    select value from setting where name = 'isolation_default'), '"namespace"'), worker.isolation)`;
