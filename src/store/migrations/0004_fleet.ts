/** Which fleet manages what (contract 16). A memory entry's id is its key. */
export const FLEET: string[] = [
  `create table managed (
    kind text not null,
    id text not null,
    fleet text not null,
    primary key (kind, id)
  ) strict, without rowid`,
  // Those that a file can name, in their order: it reads all of them, page by page.
  `create index task_named on task (id)
    where status in ('pending', 'running', 'scheduled') and type = 'scheduled' and name <> ''`,
  ...["worker", "department", "budget", "webhook"].map((table) =>
    `create trigger ${table}_unmanaged after delete on ${table} begin
      delete from managed where kind = '${table}' and id = old.id;
    end`
  ),
  `create trigger task_unmanaged after delete on task when old.name <> '' begin
    delete from managed where kind = 'schedule' and id = old.id;
  end`,
  `create trigger memory_unmanaged after delete on memory when old.scope = 'global' begin
    delete from managed where kind = 'memory' and id = old.key;
  end`,
];
