import type { Database, Statement } from "./database.ts";

/** Names of the settings that the service stores. */
type SettingName = "database_id" | "last_backup_at";

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
