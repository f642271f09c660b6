import type { Database, Row } from "../db/database.ts";
import { BEFORE, LATEST } from "./budget_ledger.ts";

/** The fields of a run that determine its targets. */
interface TargetedRun {
  worker_id: string;
  session_key: string;
  engine: string;
}

/** A target of a run, and the number of runs of that target that ended in a span. */
export interface CountedTarget extends Row {
  target: string;
  runs: number;
}

/** Lists the targets of a run: all, its worker, conversation and engine, and its worker's departments and their parents. */
export function listTargets(db: Database, run: TargetedRun, since: number): Promise<CountedTarget[]> {
  return db.read<CountedTarget>(
    `with recursive above (id) as (
      select department_id from worker_department where worker_id = ?
      union
      select parent_id from department join above on department.id = above.id where parent_id is not null
    ),
    one (value) as (values (?), (?), (?), (?) union all select 'department:' || id from above)
    select value as target, coalesce((select runs ${LATEST}), 0) - coalesce((select runs ${BEFORE}), 0) as runs
    from one`,
    [run.worker_id, ...buildOwnTargets(run), since],
  );
}

function buildOwnTargets({ worker_id, session_key, engine }: TargetedRun): string[] {
  return ["global", `worker:${worker_id}`, `session:${session_key}`, `engine:${engine}`];
}
