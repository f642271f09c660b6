// Caps sums below 2^53, so that an absurd number cannot prevent the storing of an outcome.
const SUM_MAX = 9_000_000_000_000_000;

/** Maintain counts over large tables, and delete dependent rows. changes() ignores their writes, so guards still work. */
export const TRIGGERS: string[] = [
  ...countRows("task"),
  ...countRows("execution"),
  `create trigger worker_count_insert after insert on worker begin
    update counter set value = value + 1 where name = 'worker' and key = 'all';
    update counter set value = value + new.paused where name = 'worker' and key = 'paused';
  end`,
  `create trigger worker_count_delete after delete on worker begin
    update counter set value = value - 1 where name = 'worker' and key = 'all';
    update counter set value = value - old.paused where name = 'worker' and key = 'paused';
  end`,
  `create trigger worker_count_update after update of paused on worker when old.paused <> new.paused begin
    update counter set value = value + new.paused - old.paused where name = 'worker' and key = 'paused';
  end`,
  ...["inbound", "outbound"].flatMap((key) => [
    `create trigger ${key}_count_insert after insert on ${key}_message begin
      update counter set value = value + 1 where name = 'message' and key = '${key}';
    end`,
    `create trigger ${key}_count_delete after delete on ${key}_message begin
      update counter set value = value - 1 where name = 'message' and key = '${key}';
    end`,
  ]),

  `create trigger execution_usage after update of status on execution
  when old.status in ('pending', 'running') and new.status in ('completed', 'failed') begin
    insert into counter (name, key, value) values ('ended', iif(new.failure = '', new.status, new.failure), 1)
      on conflict (name, key) do update set value = value + 1;
    insert into usage (bucket_start, worker_id, executions, failed, ms, input_tokens, output_tokens, cost_usd)
      values (new.completed_at / 900000, new.worker_id, 1, new.status = 'failed',
        max(0, new.completed_at - coalesce(new.started_at, new.completed_at)),
        new.input_tokens, new.output_tokens, new.cost_usd)
      on conflict (bucket_start, worker_id) do update set
        executions = executions + 1,
        failed = failed + excluded.failed,
        ms = ms + excluded.ms,
        input_tokens = iif(excluded.input_tokens is null, input_tokens,
          coalesce(input_tokens, 0) + excluded.input_tokens),
        output_tokens = iif(excluded.output_tokens is null, output_tokens,
          coalesce(output_tokens, 0) + excluded.output_tokens),
        cost_usd = iif(excluded.cost_usd is null, cost_usd, coalesce(cost_usd, 0) + excluded.cost_usd);
  end`,
  // Runs in the batch of the claim. A task that is due again after a lost run counts as a new wait.
  `create trigger execution_queue_wait after insert on execution when new.status = 'pending' begin
    insert into queue_wait_stats (bucket_start, runs, ms, longest_ms)
      select new.created_at / 900000, 1, max(0, new.created_at - due_at), max(0, new.created_at - due_at)
      from task
      where id = new.task_id and due_at is not null
      on conflict (bucket_start) do update set
        runs = runs + 1,
        ms = ms + excluded.ms,
        longest_ms = max(longest_ms, excluded.longest_ms);
  end`,
  settleReservation(
    "execution",
    "new.started_at",
    "old.status in ('pending', 'running') and new.status in ('completed', 'failed')",
  ),
  settleReservation(
    "bee_run",
    "new.created_at",
    "old.status = 'running' and new.status in ('completed', 'failed')",
  ),

  ...updateConversation("inbound_message", "user", "received_at"),
  ...updateConversation("outbound_message", "bee", "created_at"),
  `create trigger chat_session_conversation_insert after insert on chat_session begin
    insert into conversation (session_key, platform, id, role, updated_at)
    values ('local:' || new.id, 'local', new.id, '', new.created_at)
    on conflict (session_key) do nothing;
  end`,
  `create trigger chat_session_conversation_delete after delete on chat_session begin
    delete from conversation where session_key = 'local:' || old.id;
  end`,

  // A schedule without a conversation for its results has a separate worktree.
  ...["insert", "update of worker_id, session_key, deliver_to"].map((event, at) =>
    `create trigger task_lane_${at} after ${event} on task
    when exists (select 1 from worker where id = new.worker_id and (repo <> 'null' or home = 'none'))${
      at === 0 ? "" : " or new.lane <> ''"
    } begin
      ${setLane("new")}
      where id = new.id;
    end`
  ),
  // Tasks of a worker without a home run next to each other. Waiting tasks follow a change of it.
  `create trigger worker_home_lane after update of home on worker
  when (old.home = 'none') <> (new.home = 'none') begin
    ${setLane("task")}
    where worker_id = new.id and status in ('pending', 'running', 'scheduled');
  end`,
  `create trigger device_push_device_delete after delete on device begin
    update device_push
    set status = 'skipped', error = 'the device was removed'
    where device_id = old.id and status = 'waiting';
  end`,
  `create trigger execution_remote_run_delete after delete on execution begin
    delete from remote_run where execution_id = old.id;
    delete from launch where id = old.id;
  end`,
  ...["worker", "department", "budget", "webhook"].map((table) =>
    `create trigger ${table}_fleet_object_delete after delete on ${table} begin
      delete from fleet_object where kind = '${table}' and id = old.id;
    end`
  ),
  `create trigger task_fleet_object_delete after delete on task when old.name <> '' begin
    delete from fleet_object where kind = 'schedule' and id = old.id;
  end`,
  `create trigger memory_fleet_object_delete after delete on memory when old.scope = 'global' begin
    delete from fleet_object where kind = 'memory' and id = old.key;
  end`,
];

// Tasks with one lane run one after another.
function setLane(task: "new" | "task"): string {
  return `update task
      set lane = coalesce((
        select case
          when repo ->> '$.per' = 'task' or ${task}.type = 'scheduled' and ${task}.deliver_to = ''
            or repo = 'null' and substr(${task}.session_key, 1, 4) = 'cli:'
            then 'task:' || ${task}.id
          when ${task}.type = 'scheduled' then 'session:' || ${task}.deliver_to
          else 'session:' || ${task}.session_key end
        from worker
        where id = ${task}.worker_id and (repo <> 'null' or home = 'none')), '')`;
}

function countRows(table: string): string[] {
  return [
    `create trigger ${table}_count_insert after insert on ${table} begin
      update counter set value = value + 1 where name = '${table}' and key = new.status;
    end`,
    `create trigger ${table}_count_delete after delete on ${table} begin
      update counter set value = value - 1 where name = '${table}' and key = old.status;
    end`,
    `create trigger ${table}_count_update after update of status on ${table} when old.status <> new.status begin
      update counter set value = value - 1 where name = '${table}' and key = old.status;
      update counter set value = value + 1 where name = '${table}' and key = new.status;
    end`,
  ];
}

function updateConversation(table: string, role: string, time: string): string[] {
  return [
    `create trigger ${table}_conversation_insert after insert on ${table} when new.session_key <> '' begin
      insert into conversation (session_key, platform, id, role, updated_at)
      values (new.session_key, new.platform, new.id, '${role}', new.${time})
      on conflict (session_key) do update set
        id = excluded.id, role = excluded.role, updated_at = excluded.updated_at
        where excluded.id > conversation.id;
    end`,
    // Retention deletes the oldest messages first, so a conversation without its latest message has none.
    `create trigger ${table}_conversation_delete after delete on ${table} begin
      delete from conversation
      where session_key = old.session_key and id = old.id
        and not exists (select 1 from chat_session where 'local:' || chat_session.id = old.session_key);
    end`,
  ];
}

function addFigure(sum: string, column: string, scale: number, max: number): string {
  const figure = `cast(round(min(max(coalesce(new.${column}, 0), 0), ${max}) * ${scale}) as integer)`;
  return `min(${sum} + ${figure}, ${SUM_MAX})`;
}

// Runs in the batch of the outcome: adds the use of the run to the ledger of all its targets, and its gateways to the journal.
function settleReservation(table: "execution" | "bee_run", startedAt: string, ended: string): string {
  const [worker, task] = table === "execution" ? ["new.worker_id", "new.task_id"] : ["''", "''"];
  return `create trigger ${table}_settle after update of status on ${table}
  when ${ended} begin
    insert into ledger (target, at, runs, tokens, ms, nano_usd)
      select one.value, max(new.completed_at, coalesce(last.at, 0)), coalesce(last.runs, 0) + 1,
        ${
    addFigure(addFigure("coalesce(last.tokens, 0)", "input_tokens", 1, 1e12), "output_tokens", 1, 1e12)
  },
        coalesce(last.ms, 0) + max(0, new.completed_at - coalesce(${startedAt}, new.completed_at)
          - waited_ms - max(0, new.completed_at - coalesce(waiting_since, new.completed_at))),
        ${addFigure("coalesce(last.nano_usd, 0)", "cost_usd", 1e9, 1e4)}
      from reservation
      join json_each(reservation.targets) as one
      left join ledger as last on (last.target, last.at, last.runs) = (
        select target, at, runs from ledger where target = one.value order by at desc, runs desc limit 1)
      where reservation.execution_id = new.id;
    insert into journal (at, kind, actor, session_key, worker_id, task_id, execution_id, message_id, data)
      select new.completed_at, 'gateway.used', 'system', new.session_key, ${worker}, ${task}, new.id, new.message_id,
        json_object('gateways', json_group_object(gateway, json_object(
          'requests', requests, 'refused', refused, 'answers', answers, 'estimated', estimated,
          'input_tokens', input_tokens, 'output_tokens', output_tokens)))
      from gateway_use
      where gateway_use.execution_id = new.id
      group by gateway_use.execution_id;
    delete from reservation where execution_id = new.id;
  end`;
}
