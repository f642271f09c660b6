// A migration that is released never changes, whatever words come later.
const FAILURES = `'', 'exit_code', 'engine_error', 'timeout', 'idle_timeout', 'cancelled', 'spawn_failed',
  'server_lost', 'rate_limited', 'budget', 'verify_failed'`;

// A figure that is out of all bounds must not keep an outcome from being stored, here or later: sums stay below 2^53.
const SUM_MAX = 9_000_000_000_000_000;

function counted(before: string, column: string, scale: number, most: number): string {
  const figure = `cast(round(min(max(coalesce(new.${column}, 0), 0), ${most}) * ${scale}) as integer)`;
  return `min(${before} + ${figure}, ${SUM_MAX})`;
}

// In the batch of the outcome, whoever writes it: what the run used goes to all that it counts for.
function settle(table: string, startedAt: string, ended: string): string {
  return `create trigger ${table}_settled after update of status on ${table}
  when ${ended} begin
    insert into ledger (target, at, runs, tokens, ms, nano_usd)
      select one.value, max(new.completed_at, coalesce(last.at, 0)), coalesce(last.runs, 0) + 1,
        ${counted(counted("coalesce(last.tokens, 0)", "input_tokens", 1, 1e12), "output_tokens", 1, 1e12)},
        coalesce(last.ms, 0) + max(0, new.completed_at - coalesce(${startedAt}, new.completed_at)
          - waited_ms - max(0, new.completed_at - coalesce(waiting_since, new.completed_at))),
        ${counted("coalesce(last.nano_usd, 0)", "cost_usd", 1e9, 1e4)}
      from reservation
      join json_each(reservation.targets) as one
      left join ledger as last on (last.target, last.at, last.runs) = (
        select target, at, runs from ledger where target = one.value order by at desc, runs desc limit 1)
      where reservation.execution_id = new.id;
    delete from reservation where execution_id = new.id;
  end`;
}

/** Budgets, the ledger of what runs used, why tasks are held, and what providers say of their windows (contract 14). */
export const BUDGETS: string[] = [
  `create table budget (
    id text primary key,
    name text not null,
    name_key text not null unique,
    -- global, department:<id>, worker:<id>, session:<key> or engine:<name>.
    target text not null,
    unit text not null check (unit in ('runs', 'tokens', 'minutes', 'usd')),
    "limit" real not null check ("limit" >= 0),
    period text not null check (period in ('5h', '24h', '7d', 'month', 'total')),
    soft integer not null check (soft between 1 and 100),
    action text not null check (action in ('hold', 'stop')),
    lifted_until integer,
    -- When its events were written: once in a period each.
    soft_told_at integer,
    hard_told_at integer,
    created_at integer not null,
    updated_at integer not null
  ) strict`,
  `create index budget_target on budget (target)`,
  `create index budget_ending on budget (substr(id, -6))`,

  // What ended runs used, added up: the row of a run has the sums of its target with that run. What was used in a span is
  // the difference of two rows, so each sum takes two looks at the index however long the span is.
  `create table ledger (
    target text not null,
    -- When the run ended; it never goes back, also when the clock does.
    at integer not null,
    runs integer not null,
    tokens integer not null,
    ms integer not null,
    -- US dollars in billionths: whole numbers add up exactly.
    nano_usd integer not null,
    primary key (target, at, runs)
  ) strict, without rowid`,
  `create index ledger_age on ledger (at)`,

  // What each open run is expected to use, and what its engine has counted so far.
  `create table reservation (
    -- Of an execution, or of a run of the coordinator.
    execution_id text primary key,
    -- Everything that the run counts for, as a JSON list of targets.
    targets text not null check (json_valid(targets)),
    tokens integer not null,
    ms integer not null,
    nano_usd integer not null,
    input_tokens integer,
    output_tokens integer,
    cost_usd real,
    -- How long the run has waited for a person in ms, and since when it does so now: its minutes stand still meanwhile.
    waited_ms integer not null default 0,
    waiting_since integer
  ) strict, without rowid`,

  settle(
    "execution",
    "new.started_at",
    "old.status in ('pending', 'running') and new.status in ('completed', 'failed')",
  ),
  settle("bee_run", "new.created_at", "old.status = 'running' and new.status in ('completed', 'failed')"),

  // A run can end by a budget, or because what it did was not accepted.
  `drop trigger execution_used`,
  `alter table execution rename column failure to failure_before`,
  `alter table execution add column failure text not null default '' check (failure in (${FAILURES}))`,
  `update execution set failure = failure_before where failure_before <> ''`,
  `alter table execution drop column failure_before`,
  `alter table usage add column ms integer not null default 0`,
  `create trigger execution_used after update of status on execution
  when old.status in ('pending', 'running') and new.status in ('completed', 'failed') begin
    insert into counter (name, key, value) values ('ended', iif(new.failure = '', new.status, new.failure), 1)
      on conflict (name, key) do update set value = value + 1;
    insert into usage (quarter, worker_id, executions, failed, ms, input_tokens, output_tokens, cost_usd)
      values (new.completed_at / 900000, new.worker_id, 1, new.status = 'failed',
        max(0, new.completed_at - coalesce(new.started_at, new.completed_at)),
        new.input_tokens, new.output_tokens, new.cost_usd)
      on conflict (quarter, worker_id) do update set
        executions = executions + 1,
        failed = failed + excluded.failed,
        ms = ms + excluded.ms,
        input_tokens = iif(excluded.input_tokens is null, input_tokens,
          coalesce(input_tokens, 0) + excluded.input_tokens),
        output_tokens = iif(excluded.output_tokens is null, output_tokens,
          coalesce(output_tokens, 0) + excluded.output_tokens),
        cost_usd = iif(excluded.cost_usd is null, cost_usd, coalesce(cost_usd, 0) + excluded.cost_usd);
  end`,

  // Why a pending task may not start, as <kind>:<id>; '' when nothing holds it.
  `alter table task add column held text not null default ''`,
  `alter table task add column held_until integer`,
  // The lane is those that nothing holds; of the others only the first for each reason is looked at.
  `drop index task_lane`,
  `create index task_lane on task (worker_id, due_at, id) where status = 'pending' and held = ''`,
  `create index task_held on task (held, worker_id, due_at, id) where status = 'pending' and held <> ''`,

  // How much of a provider's own quota is used, as its engine said last.
  `create table engine_window (
    engine text not null,
    name text not null,
    utilization real not null,
    resets_at integer,
    seen_at integer not null,
    primary key (engine, name)
  ) strict, without rowid`,
];
