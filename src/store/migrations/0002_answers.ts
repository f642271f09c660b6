// Ids end at random, so their last characters find a row as well as all of them do.
const NAMED_BY_ENDING = ["worker", "department", "chat_session", "task", "execution", "inbound_message"];

/** What a caller needs to find its own answer again: messages read alone, runs by number, ids by their ending (contract 8.8-11). */
export const ANSWERS: string[] = [
  `alter table inbound_message add column alone integer not null default 0 check (alone in (0, 1))`,
  // Who took it; '' until it is routed.
  `alter table inbound_message add column routed text not null default ''
    check (routed in ('', 'task', 'reply', 'nobody'))`,
  `create index inbound_sender on inbound_message (sender, id)`,

  // Counts the runs that were asked for or fell due.
  `alter table task add column run_no integer not null default 0`,
  // Of the latest run of a schedule that ended.
  `alter table task add column last_status text not null default ''
    check (last_status in ('', 'completed', 'failed', 'cancelled'))`,
  `alter table task add column last_run_at integer`,
  `alter table task add column last_error text not null default ''`,
  `alter table task add column failures_in_row integer not null default 0`,
  `create index task_failing on task (failures_in_row) where failures_in_row > 0`,

  ...NAMED_BY_ENDING.map((table) => `create index ${table}_ending on ${table} (substr(id, -6))`),
];
