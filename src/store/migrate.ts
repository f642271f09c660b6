import { ServiceError } from "../domain/error.ts";
import { faultPoint } from "../base/fault_point.ts";
import type { Database } from "./database.ts";
import { COUNTERS } from "./migrations/0001_counters.ts";
import { RETENTION } from "./migrations/0001_retention.ts";
import { START } from "./migrations/0001_start.ts";
import { ANSWERS } from "./migrations/0002_answers.ts";
import { PEOPLE } from "./migrations/0003_people.ts";
import { BUDGETS } from "./migrations/0004_budgets.ts";
import { CONVERSATIONS } from "./migrations/0004_conversations.ts";
import { FLEET } from "./migrations/0004_fleet.ts";
import { LOGS } from "./migrations/0004_logs.ts";
import { NOTICES } from "./migrations/0004_notices.ts";
import { QUESTIONS } from "./migrations/0004_questions.ts";
import { RUNNERS } from "./migrations/0004_runners.ts";
import { RUN_NUMBERS } from "./migrations/0004_run_numbers.ts";
import { PLATFORMS } from "./migrations/0004_platforms.ts";
import { SCHEDULES } from "./migrations/0004_schedules.ts";
import { STANDBY } from "./migrations/0004_standby.ts";
import { USAGE } from "./migrations/0004_usage.ts";
import { WAITING } from "./migrations/0004_waiting.ts";

/** One step from a schema version to the next. */
export interface Migration {
  name: string;
  statements: string[];
}

/** Every migration in order. A released one is never edited: a new one is added at the end. */
export const MIGRATIONS: readonly Migration[] = [
  { name: "0001_start", statements: [...START, ...COUNTERS, ...RETENTION] },
  { name: "0002_answers", statements: ANSWERS },
  { name: "0003_people", statements: PEOPLE },
  // Not released yet: what is new until then is one version, in one file per subject. `make fixture` after each change.
  {
    name: "0004_work",
    statements: [
      ...CONVERSATIONS,
      ...QUESTIONS,
      ...BUDGETS,
      ...PLATFORMS,
      ...RUN_NUMBERS,
      ...SCHEDULES,
      ...FLEET,
      ...NOTICES,
      ...WAITING,
      ...LOGS,
      ...STANDBY,
      ...RUNNERS,
      ...USAGE,
    ],
  },
];

/** The schema version that this program needs. */
export const SCHEMA_VERSION = MIGRATIONS.length;

/** The schema version of a database: 0 when it is empty. */
export async function schemaVersion(db: Database): Promise<number> {
  const table = await db.first("select name from sqlite_master where type = 'table' and name = 'migration'");
  if (table === null) return 0;
  const row = await db.first<{ version: number }>("select max(version) as version from migration");
  return row?.version ?? 0;
}

/**
 * Brings the schema up to date. Each step and its version row are one transaction: after a kill the next start goes on with
 * the next step. A newer schema is refused, and nothing is changed.
 */
export async function migrate(
  db: Database,
  now: number,
  steps: readonly Migration[] = MIGRATIONS,
): Promise<{ from: number; to: number }> {
  const from = await schemaVersion(db);
  if (from > steps.length) {
    throw new ServiceError(
      "unavailable",
      `Cannot open the database: its schema is version ${from}, this program knows ${steps.length}; ` +
        "start the newer program again, or restore a backup made by this one. Nothing was changed",
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
  for (let version = from + 1; version <= steps.length; version++) {
    const step = steps[version - 1];
    if (step === undefined) break;
    faultPoint("migrate.step");
    await db.write([
      {
        sql: "insert into migration (version, name, applied_at) values (?, ?, ?)",
        args: [version, step.name, now],
      },
      ...step.statements.map((sql) => ({ sql, args: [] })),
    ]);
  }
  faultPoint("migrate.step");
  return { from, to: steps.length };
}
