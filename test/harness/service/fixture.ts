import type { Database } from "../../../src/store/db/database.ts";

// No statement of the schema has an empty line.
const BETWEEN = ";\n\n";

/** Dumps the schema of a database as its create statements, in order. */
export async function dumpSchema(db: Database): Promise<string> {
  const rows = await db.read<{ sql: string }>(
    // The virtual table creates its own tables.
    `select sql
    from sqlite_master
    where sql is not null and name not like 'sqlite_%' and not (type = 'table' and name glob 'search_text_*')
    order by rowid`,
  );
  return rows.map(({ sql }) => sql + BETWEEN).join("");
}

/** Splits a dump into statements. */
export function splitFixture(text: string): string[] {
  return text.split(BETWEEN).filter((one) => one !== "");
}
