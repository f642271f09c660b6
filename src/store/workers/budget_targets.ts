// What budgets count a run for
import type { Database, Row } from "../db/database.ts";
import { BEFORE, LATEST } from "./budget_ledger.ts";

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

function ownTargets({ worker_id, session_key, engine }: TargetedRun): string[] {
  return ["global", `worker:${worker_id}`, `session:${session_key}`, `engine:${engine}`];
}
