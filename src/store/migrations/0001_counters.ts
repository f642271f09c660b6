/**
 * Numbers that would otherwise have to be counted over tables that grow for ever. Triggers keep them, so they change
 * in the very batch that changes the rows, on a local file and on a server alike. changes() does not see what a
 * trigger does, so guards are not disturbed.
 */
export const COUNTERS: string[] = [
  // message: inbound, outbound, in any status. worker: all, paused. task and execution: rows by status. ended: runs by outcome since the start; retention does not change it.
  `create table counter (
    name text not null,
    key text not null,
    value integer not null default 0,
    primary key (name, key)
  ) strict, without rowid`,
  `insert into counter (name, key) values
    ('worker', 'all'), ('worker', 'paused'), ('message', 'inbound'), ('message', 'outbound'),
    ('task', 'scheduled'), ('task', 'pending'), ('task', 'running'),
    ('task', 'completed'), ('task', 'failed'), ('task', 'cancelled'),
    ('execution', 'pending'), ('execution', 'running'), ('execution', 'completed'), ('execution', 'failed')`,

  // What runs used, by worker and quarter of an hour: every time zone's day begins on one.
  `create table usage (
    quarter integer not null,
    worker_id text not null,
    executions integer not null,
    failed integer not null,
    input_tokens integer,
    output_tokens integer,
    cost_usd real,
    primary key (quarter, worker_id)
  ) strict, without rowid`,

  `create trigger worker_counted_in after insert on worker begin
    update counter set value = value + 1 where name = 'worker' and key = 'all';
    update counter set value = value + new.paused where name = 'worker' and key = 'paused';
  end`,
  `create trigger worker_counted_out after delete on worker begin
    update counter set value = value - 1 where name = 'worker' and key = 'all';
    update counter set value = value - old.paused where name = 'worker' and key = 'paused';
  end`,
  `create trigger worker_counted_over after update of paused on worker when old.paused <> new.paused begin
    update counter set value = value + new.paused - old.paused where name = 'worker' and key = 'paused';
  end`,

  ...["inbound", "outbound"].flatMap((key) => [
    `create trigger ${key}_counted_in after insert on ${key}_message begin
      update counter set value = value + 1 where name = 'message' and key = '${key}';
    end`,
    `create trigger ${key}_counted_out after delete on ${key}_message begin
      update counter set value = value - 1 where name = 'message' and key = '${key}';
    end`,
  ]),

  ...(["task", "execution"].flatMap((table) => [
    `create trigger ${table}_counted_in after insert on ${table} begin
      update counter set value = value + 1 where name = '${table}' and key = new.status;
    end`,
    `create trigger ${table}_counted_out after delete on ${table} begin
      update counter set value = value - 1 where name = '${table}' and key = old.status;
    end`,
    `create trigger ${table}_counted_over after update of status on ${table} when old.status <> new.status begin
      update counter set value = value - 1 where name = '${table}' and key = old.status;
      update counter set value = value + 1 where name = '${table}' and key = new.status;
    end`,
  ])),

  `create trigger execution_used after update of status on execution
  when old.status in ('pending', 'running') and new.status in ('completed', 'failed') begin
    insert into counter (name, key, value) values ('ended', iif(new.failure = '', new.status, new.failure), 1)
      on conflict (name, key) do update set value = value + 1;
    insert into usage (quarter, worker_id, executions, failed, input_tokens, output_tokens, cost_usd)
      values (new.completed_at / 900000, new.worker_id, 1, new.status = 'failed',
        new.input_tokens, new.output_tokens, new.cost_usd)
      on conflict (quarter, worker_id) do update set
        executions = executions + 1,
        failed = failed + excluded.failed,
        input_tokens = iif(excluded.input_tokens is null, input_tokens,
          coalesce(input_tokens, 0) + excluded.input_tokens),
        output_tokens = iif(excluded.output_tokens is null, output_tokens,
          coalesce(output_tokens, 0) + excluded.output_tokens),
        cost_usd = iif(excluded.cost_usd is null, cost_usd, coalesce(cost_usd, 0) + excluded.cost_usd);
  end`,

  `create index bee_run_session on bee_run (session_key, id)`,
];
