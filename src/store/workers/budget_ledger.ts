import type { Amounts, Month, OpenUse, StoredBudget } from "../../domain/workers/budget.ts";
import type { Usage } from "../../domain/work/execution.ts";
import { findCountEnd, findCountStart } from "../../domain/workers/budget.ts";
import { WAKEUP } from "../../base/wakeups.ts";
import { BATCH_ROWS, type Prune } from "../db/retention.ts";
import { selectCounted } from "../work/gateway_use.ts";
import { type Database, insertRow, type Statement, type Value } from "../db/database.ts";

/** The last total of a target. The use in a span is the difference of two totals. */
const LATEST = "from ledger where target = one.value order by at desc, runs desc limit 1";
/** The last total at a time or before. */
const BEFORE = "from ledger where target = one.value and at <= ? order by at desc, runs desc limit 1";

/** A budget and the use of ended runs in its period, in its integer unit. */
export interface MeasuredBudget extends StoredBudget {
  settled: number;
  /** The use of the last 7 days, and the time of the target's first use. */
  recent: number;
  first_at: number | null;
  soft_notified_at: number | null;
  hard_notified_at: number | null;
}

const COLUMNS = { runs: "runs", tokens: "tokens", minutes: "ms", usd: "nano_usd" } as const;

const UNIT =
  "case budget.unit when 'runs' then runs when 'tokens' then tokens when 'minutes' then ms else nano_usd end";

/** Measures the budgets of these targets, those with these ids, or all with null. */
export function measureBudgets(
  db: Database,
  which: { targets: readonly string[] } | { ids: readonly string[] } | null,
  now: number,
  month: Month,
): Promise<MeasuredBudget[]> {
  const bounds = (["5h", "24h", "7d", "month"] as const).map((period) => findCountStart(period, now, month));
  const where = which === null
    ? ""
    : `where ${"ids" in which ? "id" : "target"} in (select value from json_each(?))`;
  const args: Value[] = which === null ? [] : [JSON.stringify("ids" in which ? which.ids : which.targets)];
  return db.read<MeasuredBudget>(
    `select id, name, target, unit, "limit", period, soft, action, lifted_until, soft_notified_at, hard_notified_at, created_at,
      updated_at,
      coalesce((
        select ${UNIT} from ledger where ledger.target = budget.target order by at desc, runs desc limit 1), 0)
      - coalesce((
        select ${UNIT}
        from ledger
        where ledger.target = budget.target and at <= case budget.period
          when '5h' then ? when '24h' then ? when '7d' then ? when 'month' then ? else -1 end
        order by at desc, runs desc
        limit 1), 0) as settled,
      coalesce((
        select ${UNIT} from ledger where ledger.target = budget.target order by at desc, runs desc limit 1), 0)
      - coalesce((
        select ${UNIT}
        from ledger
        where ledger.target = budget.target and at <= ?
        order by at desc, runs desc
        limit 1), 0) as recent,
      (select min(at) from ledger where ledger.target = budget.target) as first_at
    from budget
    ${where}
    order by id`,
    [...bounds, findCountStart("7d", now, month), ...args],
  );
}

/** Returns the use of ended runs of a target in a period, in its integer unit. */
export async function readSettledUse(
  db: Database,
  { target, unit, period }: Pick<StoredBudget, "target" | "unit" | "period">,
  now: number,
  month: Month,
): Promise<number> {
  return await db.readValue<number>(
    `select coalesce((select ${COLUMNS[unit]} ${LATEST}), 0) - coalesce((select ${
      COLUMNS[unit]
    } ${BEFORE}), 0) as settled
    from (select ? as value) as one`,
    [findCountStart(period, now, month), target],
  ) ?? 0;
}

/** Returns when the first run of a target ended, or null. */
export function findFirstUse(db: Database, target: string): Promise<number | null> {
  return db.readValue<number>("select min(at) from ledger where target = ?", [target]);
}

export async function hasBudgets(db: Database): Promise<boolean> {
  return await db.first("select 1 as one from budget limit 1") !== null;
}

// Most ledger rows that one search reads.
const ROOM_MAX_ROWS = 100_000;

/** Finds the end of the run whose use has to leave the period so that at most `most` (counted) remains, or null. */
export async function findExcessEnd(
  db: Database,
  budget: Pick<MeasuredBudget, "target" | "unit" | "settled">,
  most: number,
  after: number,
): Promise<number | null> {
  if (budget.settled <= most) return null;
  const field = COLUMNS[budget.unit];
  return await db.readValue<number>(
    `select at
    from (select at, ${field} as counted from ledger where target = ? and at > ? order by at, runs limit ${ROOM_MAX_ROWS})
    where counted >= (
      select ${field} from ledger where target = ? order by at desc, runs desc limit 1) - ?
    limit 1`,
    [budget.target, after, budget.target, most],
  );
}

/** Returns the time at which the use of a budget falls to `most` without new runs. Null when it never does. */
export async function findCapacityTime(
  db: Database,
  budget: MeasuredBudget,
  most: number,
  { now, month }: { now: number; month: Month },
): Promise<number | null> {
  const at = await findExcessEnd(db, budget, most, findCountStart(budget.period, now, month));
  return at === null ? null : findCountEnd(budget.period, at, month);
}

/** Returns the use of each of the last runs of a worker, newest first. */
export async function listLastAmounts(db: Database, workerId: string, count: number): Promise<Amounts[]> {
  const sums = await db.read<Amounts>(
    `select runs, tokens, ms, nano_usd from ledger where target = ? order by at desc, runs desc limit ?`,
    [`worker:${workerId}`, count + 1],
  );
  const first = sums.at(-1);
  // The very first run has no total before it.
  if (first?.runs === 1 && sums.length <= count) sums.push({ runs: 0, tokens: 0, ms: 0, nano_usd: 0 });
  return sums.slice(0, -1).map((sum, index) => {
    const before = sums[index + 1] ?? sum;
    return {
      runs: 1,
      tokens: sum.tokens - before.tokens,
      ms: sum.ms - before.ms,
      nano_usd: sum.nano_usd - before.nano_usd,
    };
  });
}

/** Stores the expected use of a new run. Belongs into the batch of its claim. */
export function insertReservation(
  executionId: string,
  targets: readonly string[],
  expected: Amounts,
): Statement {
  const { tokens, ms, nano_usd } = expected;
  const row = { execution_id: executionId, targets: JSON.stringify(targets), tokens, ms, nano_usd };
  return insertRow("reservation", row);
}

/** Removes the expected use of a run that its gate prevented. */
export function deleteReservation(executionId: string): Statement {
  return {
    sql: "delete from reservation where execution_id = ?",
    args: [executionId],
    wakeup: WAKEUP.budget,
  };
}

/** Stores the use that the engine of an open run reported. Later reports have higher values. */
export function updateReservationUse(executionId: string, usage: Usage): Statement {
  return {
    sql: `update reservation
      set input_tokens = max(coalesce(input_tokens, 0), coalesce(?, 0)),
        output_tokens = max(coalesce(output_tokens, 0), coalesce(?, 0)),
        cost_usd = iif(? is null, cost_usd, max(coalesce(cost_usd, 0), ?))
      where execution_id = ?`,
    args: [usage.input_tokens, usage.output_tokens, usage.cost_usd, usage.cost_usd, executionId],
    wakeup: WAKEUP.budget,
  };
}

/** Stops or continues the minutes of a run that waits for a person (contract 14). */
export function updateReservationWait(executionId: string, waiting: boolean, now: number): Statement {
  return {
    sql: waiting
      ? "update reservation set waiting_since = coalesce(waiting_since, ?) where execution_id = ?"
      : `update reservation
        set waited_ms = waited_ms + max(0, ? - waiting_since), waiting_since = null
        where execution_id = ? and waiting_since is not null`,
    args: [now, executionId],
    wakeup: WAKEUP.budget,
  };
}

export interface OpenRun extends OpenUse {
  execution_id: string;
  started_at: number | null;
  /** Whether the run waits for a person. Such minutes do not count. */
  waiting: boolean;
}

interface ReservationRow {
  execution_id: string;
  targets: string;
  tokens: number;
  ms: number;
  nano_usd: number;
  counted_tokens: number;
  counted_nano_usd: number;
  waited_ms: number;
  waiting_since: number | null;
  started_at: number | null;
}

/** Lists every open run with a reservation, with the tokens that a gateway counted, else those that its engine reported, of workers and of the coordinator. Minutes follow the service's own clock. */
export async function listOpenRuns(db: Database, now: number): Promise<OpenRun[]> {
  const rows = await db.read<ReservationRow>(
    `select execution_id, targets, tokens, ms, nano_usd, waited_ms, waiting_since,
      coalesce(
        (select sum(input_tokens + output_tokens) ${selectCounted("reservation.execution_id")}),
        coalesce(reservation.input_tokens, 0) + coalesce(reservation.output_tokens, 0)) as counted_tokens,
      cast(round(max(
        coalesce(reservation.cost_usd, 0),
        coalesce((select sum(cost_usd) ${selectCounted("reservation.execution_id")}), 0)) * 1e9) as integer)
        as counted_nano_usd,
      coalesce(
        (select started_at from execution where id = execution_id),
        (select created_at from bee_run where id = execution_id)) as started_at
    from reservation`,
  );
  return rows.map((row) => ({
    execution_id: row.execution_id,
    targets: JSON.parse(row.targets) as string[],
    expected: { runs: 1, tokens: row.tokens, ms: row.ms, nano_usd: row.nano_usd },
    counted: {
      runs: 0,
      tokens: row.counted_tokens,
      ms: row.started_at === null
        ? 0
        : Math.max(0, (row.waiting_since ?? now) - row.started_at - row.waited_ms),
      nano_usd: row.counted_nano_usd,
    },
    started_at: row.started_at,
    waiting: row.waiting_since !== null,
  }));
}

/** Lists the targets of runs that ended, and of budgets that changed, at or after a time. */
export function listChangedTargets(db: Database, since: number): Promise<string[]> {
  return db.readColumn<string>(
    "select target from ledger where at >= ? union select target from budget where updated_at >= ?",
    [since, since],
  );
}

/** Moves the use of a target to another target, which may already have use. */
export function moveUse(from: string, to: string): Statement[] {
  const merged = `merged:${to}`;
  const names = ["runs", "tokens", "ms", "nano_usd"];
  const steps = names.map((name) => `${name} - lag(${name}, 1, 0) over own as ${name}_step`).join(", ");
  const sums = names.map((name) => `sum(${name}_step) over both`).join(", ");
  return [
    // A row has the total of one target. A merged row has the sum of the steps of both targets up to its time.
    {
      sql: `insert into ledger (target, at, ${names.join(", ")})
        select ?, at, ${sums}
        from (
          select target, at, runs, ${steps}
          from ledger
          where target in (?, ?) and exists (select 1 from ledger where target = ?)
          window own as (partition by target order by at, runs))
        window both as (order by at, target, runs rows unbounded preceding)`,
      args: [merged, from, to, from],
    },
    {
      sql: "delete from ledger where target in (?, ?) and exists (select 1 from ledger where target = ?)",
      args: [from, to, merged],
    },
    { sql: "update ledger set target = ? where target = ?", args: [to, merged], wakeup: WAKEUP.budget },
  ];
}

/** Deletes ledger rows that no period needs. The newest row before `before` stays as the base of later totals. */
export const pruneLedger: Prune = (before) => ({
  sql: `delete from ledger
      where (target, at, runs) in (
        select target, at, runs
        from ledger as old
        where at < ? and exists (
          select 1
          from ledger
          where ledger.target = old.target and (ledger.at, ledger.runs) > (old.at, old.runs) and ledger.at < ?)
        order by at
        limit ?)
      returning 1`,
  args: [before, before, BATCH_ROWS],
});

export interface TargetedRun {
  worker_id: string;
  session_key: string;
  engine: string;
  /** The engine that `engine` replaces, or "". Its budgets count, too. */
  fallback_from?: string;
}

/** A target of a run, and the number of runs of that target that ended in a span. */
export interface CountedTarget {
  target: string;
  runs: number;
}

/**
 * Lists the budget targets of a run: all runs, its worker, its conversation, its engine, the engine that it replaces, and its
 * worker's departments with their parents.
 */
export function listTargets(db: Database, run: TargetedRun, since: number): Promise<CountedTarget[]> {
  return db.read<CountedTarget>(
    `with recursive above (id) as (
      select department_id from worker_department where worker_id = ?
      union
      select parent_id from department join above on department.id = above.id where parent_id is not null
    ),
    one (value) as (select value from json_each(?) union all select 'department:' || id from above)
    select value as target, coalesce((select runs ${LATEST}), 0) - coalesce((select runs ${BEFORE}), 0) as runs
    from one`,
    [run.worker_id, JSON.stringify(listOwnTargets(run)), since],
  );
}

function listOwnTargets({ worker_id, session_key, engine, fallback_from = "" }: TargetedRun): string[] {
  const engines = fallback_from === "" ? [engine] : [engine, fallback_from];
  return [
    ...["global", `worker:${worker_id}`, `session:${session_key}`],
    ...engines.map((name) => `engine:${name}`),
  ];
}
