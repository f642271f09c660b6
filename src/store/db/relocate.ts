import type { Database, Statement } from "./database.ts";

const PATHS = [
  ["upload", "path"],
  ["worker", "work_dir"],
  ["session_context", "work_dir"],
  ["question", "work_dir"],
] as const;
/** JSON columns with a path inside. */
const MEDIA = [
  ["inbound_message", "media", "$.path"],
  ["outbound_message", "media", "$.path"],
  ["outbound_part", "body", "$.media.path"],
] as const;

/** Replaces the path prefix `from` with `to` after the data directory has moved. */
export async function relocate(db: Database, from: string, to: string): Promise<void> {
  if (from === to) return;
  const below = `${from}/`;
  const statements: Statement[] = [
    ...PATHS.map(([table, column]) => ({
      sql: `update ${table} set ${column} = ? || substr(${column}, ?) where substr(${column}, 1, ?) = ?`,
      args: [to, from.length + 1, below.length, below],
    })),
    ...MEDIA.map(([table, column, path]) => ({
      sql: `update ${table}
        set ${column} = json_set(${column}, '${path}', ? || substr(${column} ->> '${path}', ?))
        where substr(${column} ->> '${path}', 1, ?) = ?`,
      args: [to, from.length + 1, below.length, below],
    })),
  ];
  await db.write(statements);
}
