const IS_ACTIVE = "in ('pending', 'running', 'scheduled')";
const HAS_ENDED = "in ('completed', 'failed', 'cancelled')";
const IS_OPEN = "in ('pending', 'running')";

// More characters than the prompt of a child takes of all its parents.
const RESULT_MAX_CHARACTERS = 65_536;

/** SQL of whether the row `task` has ended for its children: the task, and the run of a task that was cancelled. */
export function hasEnded(task: string): string {
  return `(${task}.status ${HAS_ENDED} and not exists (
        select 1 from execution where execution.id = ${task}.execution_id and execution.status ${IS_OPEN}))`;
}

/** SQL of what the ended row `task` hands to its children. */
export function selectResult(task: string): string {
  return `substr(iif(${task}.status = 'completed',
      coalesce((select result from execution where execution.id = ${task}.execution_id), ''), ${task}.reason),
      1, ${RESULT_MAX_CHARACTERS})`;
}

/** SQL of why a failed or cancelled parent cancels a task. */
export function formatStopReason(parent: string, status: string): string {
  return `'it waits for task ' || ${parent} || ', which ' || iif(${status} = 'failed', 'failed', 'was cancelled')`;
}

const COUNT_OPEN_PARENTS =
  "(select count(*) from task_parent where task_parent.task_id = task.id and task_parent.status = '')";

const JOURNAL = "insert into journal (at, kind, actor, session_key, worker_id, task_id, message_id, data)";
const KEYS = "task.session_key, task.worker_id, task.id, task.message_id";

/** The task that has ended, and the time, as SQL. */
interface TaskEnd {
  id: string;
  at: string;
}

// Copies how the task ended to its children, cancels those that its failure cancels with their children, and releases the others.
function endParent({ id, at }: TaskEnd): string {
  // The ended task, and all tasks that its failure cancels, each with the parent that does.
  const ended = `with recursive ended (id, parent, status) as (
      select id, '', status from task where id = ${id}
      union
      select task.id, ended.id, 'cancelled'
      from ended
      join task_parent on task_parent.parent_id = ended.id
      join task on task.id = task_parent.task_id
      where ended.status <> 'completed' and task.status = 'pending' and task.after_when = 'success')`;
  const children = `${ended}
      select task_parent.task_id
      from ended
      join task_parent on task_parent.parent_id = ended.id`;
  const stopped = `${ended}
      select ended.id, cause.id as parent, cause.status
      from ended
      join ended as cause on cause.id = ended.parent
      where ended.parent <> ''
      group by ended.id`;
  const reason = formatStopReason("one.parent", "one.status");
  return `update task_parent
      set status = iif(parent_id = ${id}, (select status from task where id = ${id}), 'cancelled'), ended_at = ${at},
        result = iif(parent_id = ${id}, (select ${selectResult("task")} from task where id = ${id}), '')
      where parent_id in (${ended} select id from ended);
    update task
      set open_parents = ${COUNT_OPEN_PARENTS}, due_at = iif(status = 'pending', ${at}, due_at)
      where id in (${children});
    ${JOURNAL}
      select ${at}, 'task.cancelled', 'system', ${KEYS}, json_object('reason', ${reason})
      from (${stopped}) as one
      join task on task.id = one.id;
    ${JOURNAL}
      select ${at}, 'task.due', 'system', ${KEYS}, json_object('at', ${at}, 'after', ${id})
      from task
      where status = 'pending' and open_parents = 0 and id in (${children})
        and id not in (${ended} select id from ended);
    update task
      set status = 'cancelled', stopped_by = one.parent, reason = ${reason},
        due_at = null, held = '', held_until = null, updated_at = ${at}
      from (${stopped}) as one
      where task.id = one.id;
    insert into journal (at, kind, actor, session_key)
      select ${at}, 'session.idle', 'system', session_key
      from (
        select distinct session_key
        from task
        where stopped_by <> '' and status = 'cancelled' and session_key <> new.session_key
          and id in (
            with recursive stopped (id) as (
              select ${id}
              union
              select task.id from stopped join task on task.stopped_by = stopped.id and task.stopped_by <> '')
            select id from stopped)) as one
      where not exists (
        select 1
        from task
        where task.session_key = one.session_key and task.status ${IS_ACTIVE} and task.status <> 'scheduled');`;
}

/**
 * Keep the copies and counts of task_parent in the transaction of every statement that ends a task or returns one to the queue. SQLite
 * does not run a trigger for its own changes, so one run of the first trigger cancels the whole tree.
 */
export const PARENT_TRIGGERS: string[] = [
  `create trigger task_parent_end after update of status on task
  when old.status ${IS_ACTIVE} and ${hasEnded("new")}
    and exists (select 1 from task_parent where parent_id = new.id) begin
    ${endParent({ id: "new.id", at: "new.updated_at" })}
  end`,
  // The run of a task that was cancelled ends later than its task.
  `create trigger execution_parent_end after update of status on execution
  when old.status ${IS_OPEN} and new.status not ${IS_OPEN}
    and exists (select 1 from task where id = new.task_id and execution_id = new.id and status ${HAS_ENDED})
    and exists (select 1 from task_parent where parent_id = new.task_id and status = '') begin
    ${endParent({ id: "new.task_id", at: "new.completed_at" })}
  end`,
  // A task that runs again is open for its children again, also for those that were about to start.
  `create trigger task_parent_open after update of status on task
  when old.status ${HAS_ENDED} and new.status ${IS_ACTIVE}
    and exists (select 1 from task_parent where parent_id = new.id) begin
    update task_parent set status = '', result = '', ended_at = null where parent_id = new.id;
    update task
      set open_parents = ${COUNT_OPEN_PARENTS}, held = iif(status = 'pending', '', held),
        held_until = iif(status = 'pending', null, held_until)
      where id in (select task_id from task_parent where parent_id = new.id);
  end`,
  `create trigger task_parent_delete after delete on task when old.after <> '[]' begin
    delete from task_parent where task_id = old.id;
  end`,
];
