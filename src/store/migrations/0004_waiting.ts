/** How long runs waited for their start, by quarter of an hour, for GET /api/system/series (contract 17). */
export const WAITING: string[] = [
  `create table waited (
    quarter integer primary key,
    runs integer not null,
    ms integer not null,
    longest_ms integer not null
  ) strict`,

  // In the batch of the claim. A task that is due again after a lost run waits anew.
  `create trigger execution_waited after insert on execution when new.status = 'pending' begin
    insert into waited (quarter, runs, ms, longest_ms)
      select new.created_at / 900000, 1, max(0, new.created_at - due_at), max(0, new.created_at - due_at)
      from task
      where id = new.task_id and due_at is not null
      on conflict (quarter) do update set
        runs = runs + 1,
        ms = ms + excluded.ms,
        longest_ms = max(longest_ms, excluded.longest_ms);
  end`,
];
