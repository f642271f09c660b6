import type { Database, Statement } from "./database.ts";

/** Columns that hold absolute paths, and JSON texts with one at `$.path`. */
const PATHS = [["upload", "path"], ["worker", "work_dir"], ["session_context", "work_dir"]] as const;
const MEDIA = ["inbound_message", "outbound_message"] as const;

/** Paths below `from` become paths below `to`: the data directory has moved. */
export async function relocate(db: Database, from: string, to: string): Promise<void> {
  if (from === to) return;
  const below = `${from}/`;
  const statements: Statement[] = [
    ...PATHS.map(([table, column]) => ({
      sql: `update ${table} set ${column} = ? || substr(${column}, ?) where substr(${column}, 1, ?) = ?`,
      args: [to, from.length + 1, below.length, below],
    })),
    ...MEDIA.map((table) => ({
      sql: `update ${table}
        set media = json_set(media, '$.path', ? || substr(media ->> '$.path', ?))
        where substr(media ->> '$.path', 1, ?) = ?`,
      args: [to, from.length + 1, below.length, below],
    })),
  ];
  await db.write(statements);
}
