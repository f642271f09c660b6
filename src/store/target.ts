// What budgets count a run for
import type { Database, Row } from "./database.ts";
import { BEFORE, LATEST } from "./ledger.ts";

/** A run, as budgets name what it counts for. */
interface TargetedRun {
  worker_id: string;
  session_key: string;
  engine: string;
}

/** What a run of a worker counts for, and how many runs of each ended after `since`. */
export interface CountedTarget extends Row {
  target: string;
  runs: number;
}

/** Everything that a run counts for: all, its worker, its conversation, its engine, and its worker's departments with those above. */
export function listTargets(
  db: Database,
  run: TargetedRun,
  since: number,
): Promise<CountedTarget[]> {
  return db.read<CountedTarget>(
    `with recursive above (id) as (
      select department_id from worker_department where worker_id = ?
      union
      select parent_id from department join above on department.id = above.id where parent_id is not null
    ),
    one (value) as (values (?), (?), (?), (?) union all select 'department:' || id from above)
    select value as target, coalesce((select runs ${LATEST}), 0) - coalesce((select runs ${BEFORE}), 0) as runs
    from one`,
    [run.worker_id, ...ownTargets(run), since],
  );
}

/** The departments of these workers with those above, by the ids of the workers. */
export async function listDepartmentsAbove(
  db: Database,
  workerIds: readonly string[],
): Promise<Map<string, string[]>> {
  const rows = await db.read<{ worker_id: string; id: string }>(
    `with recursive above (worker_id, id) as (
      select worker_id, department_id from worker_department where worker_id in (select value from json_each(?))
      union
      select above.worker_id, parent_id
      from department
      join above on department.id = above.id
      where parent_id is not null
    )
    select worker_id, id from above`,
    [JSON.stringify(workerIds)],
  );
  const found = Map.groupBy(rows, ({ worker_id }) => worker_id);
  return new Map([...found].map(([worker, above]) => [worker, above.map(({ id }) => id)]));
}

/** What a run counts for, when its worker is in these departments and below them. */
export function targetsOf(run: TargetedRun, departments: readonly string[]): string[] {
  return [...ownTargets(run), ...departments.map((id) => `department:${id}`)];
}

function ownTargets({ worker_id, session_key, engine }: TargetedRun): string[] {
  return ["global", `worker:${worker_id}`, `session:${session_key}`, `engine:${engine}`];
}
