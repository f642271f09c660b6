/** Logs of runs inside this process, which begin and end in one commit: they are a part of it. */
export const LOGS: string[] = [
  `create table execution_log (
    execution_id text primary key,
    text text not null
  ) strict`,
  `create trigger execution_log_gone after delete on execution begin
    delete from execution_log where execution_id = old.id;
  end`,
];
