import { expect } from "vitest";
import type { Database } from "../../src/store/database.ts";

/** Fails unless every counter says what counting the rows says. */
export async function expectCounters(db: Database): Promise<void> {
  const kept = await db.read("select name, key, value from counter where name <> 'ended' order by name, key");
  const counted = await db.read(
    `select counter.name, counter.key, case counter.name
      when 'task' then (select count(*) from task where status = counter.key)
      when 'execution' then (select count(*) from execution where status = counter.key)
      when 'message' then iif(counter.key = 'inbound',
        (select count(*) from inbound_message), (select count(*) from outbound_message))
      else (select count(*) from worker where counter.key = 'all' or paused = 1) end as value
    from counter
    where name <> 'ended'
    order by name, key`,
  );
  expect(kept).toEqual(counted);
}

/** A worker, a task and an execution by SQL alone, for tests that need many; `id` tells them apart. */
export function insertRows(table: string, rows: Record<string, string | number | null>[]) {
  return rows.map((row) => ({
    sql: `insert into ${table} (${Object.keys(row).join(", ")}) values (${
      Object.keys(row).map(() => "?").join(", ")
    })`,
    args: Object.values(row),
  }));
}
