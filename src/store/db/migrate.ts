import { faultPoint } from "../../base/fault_point.ts";
import { ServiceError } from "../../domain/call/error.ts";
import type { Database } from "./database.ts";
import { SCHEMA } from "../migrations/schema.ts";

export interface Migration {
  name: string;
  statements: string[];
}

/** Every migration in order. A released migration never changes. New migrations are added at the end. */
export const MIGRATIONS: readonly Migration[] = [{ name: "0001_schema", statements: SCHEMA }];

export const SCHEMA_VERSION = MIGRATIONS.length;

/** The reason to refuse a database from before the first release, and the way out. */
export const UNRELEASED_SCHEMA =
  "its schema is from before the first release. Start the program that wrote it and run " +
  "`svc ctl export > fleet.yaml`. Then start this program with an empty data directory or database and run " +
  "`svc ctl apply -f fleet.yaml`. An export does not include users, tokens, pairings, conversations and history";

/** Reads the schema version of a database, 0 when it is empty, and whether a release created it. */
export async function readSchema(
  db: Database,
  steps: readonly Migration[] = MIGRATIONS,
): Promise<{ version: number; isReleased: boolean }> {
  const table = await db.first("select name from sqlite_master where type = 'table' and name = 'migration'");
  if (table === null) return { version: 0, isReleased: true };
  const applied = await db.read<{ version: number; name: string }>(
    "select version, name from migration order by version",
  );
  return {
    version: applied.at(-1)?.version ?? 0,
    isReleased: applied.every(({ version, name }) =>
      version > steps.length || steps[version - 1]?.name === name
    ),
  };
}

/**
 * Updates the schema. Each step and its version row are one transaction, so after a kill the next start continues with the next
 * step. Throws ServiceError `unavailable` and changes nothing when this program cannot use the schema.
 */
export async function migrate(
  db: Database,
  now: number,
  steps: readonly Migration[] = MIGRATIONS,
): Promise<{ from: number; to: number }> {
  const { version: from, isReleased } = await readSchema(db, steps);
  if (!isReleased) {
    throw new ServiceError(
      "unavailable",
      `Cannot open the database: ${UNRELEASED_SCHEMA}. Nothing was changed`,
    );
  }
  if (from > steps.length) {
    throw new ServiceError(
      "unavailable",
      `Cannot open the database: its schema is version ${from}, but this program supports version ${steps.length}. ` +
        "Start the newer program again, or restore a backup of this one. Nothing was changed",
    );
  }
  faultPoint("migrate.step");
  if (from === 0) {
    await db.write([{
      sql: `create table if not exists migration (
        version integer primary key,
        name text not null,
        applied_at integer not null
      ) strict`,
      args: [],
    }]);
  }
  for (const [index, { name, statements }] of steps.entries()) {
    if (index < from) continue;
    faultPoint("migrate.step");
    await db.write([
      {
        sql: "insert into migration (version, name, applied_at) values (?, ?, ?)",
        args: [index + 1, name, now],
      },
      ...statements.map((sql) => ({ sql, args: [] })),
    ]);
  }
  faultPoint("migrate.step");
  return { from, to: steps.length };
}
