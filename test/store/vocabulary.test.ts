import { expect, it } from "vitest";
import {
  AFTER_CONDITIONS,
  BEE_RUN_STATUSES,
  BUDGET_ACTIONS,
  BUDGET_PERIODS,
  BUDGET_UNITS,
  CHAT_ROLES,
  DEVICE_PUSH_STATUSES,
  ENGINE_USES,
  EXECUTION_STATUSES,
  FAILURES,
  INBOUND_STATUSES,
  LAST_STATUSES,
  LOGIN_KINDS,
  OCCURRENCE_STATUSES,
  OUTBOUND_STATUSES,
  OVERLAPS,
  PASSWORD_SOURCES,
  QUESTION_STATUSES,
  ROLES,
  ROUTED_TO,
  SOURCE_TYPES,
  STEER_STATUSES,
  TASK_STATUSES,
  TASK_TYPES,
  TREE_PUSH_STATES,
  USER_ORIGINS,
  WEBHOOK_ORIGINS,
} from "../../src/domain/call/vocabulary.ts";
import { LAUNCH_STATES } from "../../src/domain/work/launch.ts";
import { Database } from "../../src/store/db/database.ts";
import { SEARCH_SOURCES } from "../../src/domain/system/search.ts";
import { migrate } from "../../src/store/db/migrate.ts";

/** The values of the vocabulary for each column with a CHECK list. */
const WORDS: Record<string, readonly string[]> = {
  "credential.source": PASSWORD_SOURCES,
  "user.origin": USER_ORIGINS,
  "webhook.origin": WEBHOOK_ORIGINS,
  "user.role": ROLES,
  "refresh_token.kind": LOGIN_KINDS,
  "device_push.status": DEVICE_PUSH_STATUSES,
  "inbound_message.status": INBOUND_STATUSES,
  "inbound_message.routed": ROUTED_TO,
  "bee_run.status": BEE_RUN_STATUSES,
  "task.type": TASK_TYPES,
  "task.status": TASK_STATUSES,
  "task.last_status": LAST_STATUSES,
  "task.overlap": OVERLAPS,
  "task.after_when": AFTER_CONDITIONS,
  "task_parent.status": LAST_STATUSES,
  "occurrence.status": OCCURRENCE_STATUSES,
  "execution.verify_status": ["passed", "failed"],
  "execution.status": EXECUTION_STATUSES,
  "execution.failure": ["", ...FAILURES],
  "execution.engine_use": ["", ...ENGINE_USES],
  "conversation.role": ["", ...CHAT_ROLES],
  "question.status": QUESTION_STATUSES,
  "steer.status": STEER_STATUSES,
  "tree.push": TREE_PUSH_STATES,
  "launch.state": LAUNCH_STATES,
  "budget.unit": BUDGET_UNITS,
  "budget.period": BUDGET_PERIODS,
  "budget.action": BUDGET_ACTIONS,
  "outbound_message.status": OUTBOUND_STATUSES,
  "search_entry.source": SEARCH_SOURCES,
  "outbound_message.source_type": SOURCE_TYPES,
};

it("each CHECK list contains the values of the vocabulary (architecture, Style)", async () => {
  await using db = await Database.open(":memory:");
  await migrate(db, 0);
  const tables = await db.read<{ name: string; sql: string }>(
    "select name, sql from sqlite_master where type = 'table' and sql is not null",
  );
  const checked = tables.flatMap(({ name, sql }) =>
    [...sql.matchAll(/check \((\w+) in \(([^)]*'[^)]*)\)\)/g)].map(([, column, list = ""]) =>
      [`${name}.${column}`, [...list.matchAll(/'([^']*)'/g)].map(([, word]) => word)] as const
    )
  );
  expect(Object.fromEntries(checked)).toEqual(WORDS);
});

it("each status of tasks and executions has its counter", async () => {
  await using db = await Database.open(":memory:");
  await migrate(db, 0);
  const rows = await db.read<{ name: string; key: string }>("select name, key from counter");
  const keys = (name: string) => rows.filter((row) => row.name === name).map((row) => row.key).sort();
  expect(keys("task")).toEqual([...TASK_STATUSES].sort());
  expect(keys("execution")).toEqual([...EXECUTION_STATUSES].sort());
});
