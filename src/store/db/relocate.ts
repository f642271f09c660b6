import type { Database, Statement } from "./database.ts";

/** Columns that hold absolute paths. */
const PATHS = [
  ["upload", "path"],
  ["worker", "work_dir"],
  ["session_context", "work_dir"],
  ["question", "work_dir"],
] as const;
/** JSON texts with a path in them: a message's file, and the parts of a reply that are to be sent. */
const MEDIA = [
  ["inbound_message", "media", "$.path"],
  ["outbound_message", "media", "$.path"],
  ["outbound_part", "body", "$.media.path"],
] as const;

/** Paths below `from` become paths below `to`: the data directory has moved. */
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
