import type { Database, Value } from "../../src/store/database.ts";

/** The schema of a database as the statements that make it, in their original order. */
export async function dumpSchema(db: Database): Promise<string> {
  const rows = await db.read<{ sql: string }>(
    "select sql from sqlite_master where sql is not null and name not like 'sqlite_%' and type <> 'trigger' order by rowid",
  );
  const triggers = await db.read<{ sql: string }>(
    "select sql from sqlite_master where type = 'trigger' order by rowid",
  );
  return "-- schema\n" + rows.map(({ sql }) => `${sql};\n`).join("") +
    // They come after the rows: inserting an existing row must not fire them.
    triggers.map(({ sql }) => `-- trigger\n${sql};\n`).join("") + "-- rows\n";
}

/** Every row of every table, as inserts. */
export async function dumpRows(db: Database): Promise<string> {
  const tables = await db.read<{ name: string }>(
    "select name from sqlite_master where type = 'table' and name not like 'sqlite_%' order by rowid",
  );
  let text = "";
  for (const { name } of tables) {
    for (const row of await db.read<Record<string, Value>>(`select * from ${name}`)) {
      text += `insert into ${name} (${Object.keys(row).join(", ")}) values (${
        Object.values(row).map(literal).join(", ")
      });\n`;
    }
  }
  return text;
}

function literal(value: Value): string {
  if (value === null) return "null";
  return typeof value === "string" ? `'${value.replaceAll("'", "''")}'` : String(value);
}

/** The statements of a dump, in the order in which they can be run on an empty database. */
export function fixtureStatements(text: string): string[] {
  const [schema = "", rows = ""] = text.split("-- rows\n");
  const [tables = "", ...triggers] = schema.replace("-- schema\n", "").split("-- trigger\n");
  return [...statements(tables), ...statements(rows), ...triggers.map((one) => one.trim().replace(/;$/, ""))];
}

function statements(text: string): string[] {
  return text.split(/;\n/).map((one) => one.trim()).filter((one) => one !== "");
}
