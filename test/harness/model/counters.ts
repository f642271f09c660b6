import { expect } from "vitest";
import type { Database } from "../../../src/store/db/database.ts";

/** Describes every counter that differs from the number of rows. */
export async function findBrokenCounters(db: Database): Promise<string[]> {
  const rows = await db.read<{ name: string; key: string; value: number; real: number }>(
    `select * from (
      select name, key, value, case name
        when 'task' then (select count(*) from task where status = key)
        when 'execution' then (select count(*) from execution where status = key)
        when 'message' then iif(key = 'inbound',
          (select count(*) from inbound_message), (select count(*) from outbound_message))
        when 'worker' then (select count(*) from worker where key = 'all' or paused = 1) end as real
      from counter
      where name <> 'ended')
    where value is not real`,
  );
  return rows.map(({ name, key, value, real }) =>
    `the counter ${name} ${key} says ${value}, there are ${real}`
  );
}

export async function expectCounters(db: Database): Promise<void> {
  expect(await findBrokenCounters(db)).toEqual([]);
}

/**
 * Builds inserts of workers, tasks and executions by SQL alone, for tests that need many, each with its own
 * `id`.
 */
export function insertRows(table: string, rows: Record<string, string | number | null>[]) {
  return rows.map((row) => ({
    sql: `insert into ${table} (${Object.keys(row).join(", ")}) values (${
      Object.keys(row).map(() => "?").join(", ")
    })`,
    args: Object.values(row),
  }));
}
