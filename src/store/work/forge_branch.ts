import type { PushedBranch } from "../../domain/work/forge_branch.ts";
import { type Database, guard, type Statement } from "../db/database.ts";

interface BranchRow extends PushedBranch {
  id: string;
  worker_id: string;
}

const BRANCHES_READ = 20;

/** Lists the branches with this name whose latest pushed commit is this one, of all workers. */
export function listPushedBranches(
  db: Database,
  { branch, commit }: { branch: string; commit: string },
): Promise<BranchRow[]> {
  return db.read<BranchRow>(
    `select tree.id, worker_id, lane, branch, pushed_commit, rounds, coalesce(worker.repo ->> '$.url', '') as repository
    from tree
    join worker on worker.id = worker_id
    where pushed_commit = ? and pushed_commit <> '' and branch = ?
    order by tree.id desc
    limit ${BRANCHES_READ}`,
    [commit, branch],
  );
}

/** Counts an event that goes back to the agent of a branch, guarded by the limit. */
export function countRound(treeId: string, limit: number): Statement[] {
  return guard("update tree set rounds = rounds + 1 where id = ? and rounds < ?", [treeId, limit]);
}

/** Stores the event that came after the last round, for the inbox. */
export function endRounds(treeId: string, text: string, now: number): Statement[] {
  return [
    {
      sql: "update tree set rounds_over = ?, rounds_over_at = ? where id = ?",
      args: [text.slice(0, TEXT_CHARACTERS), now, treeId],
    },
    // The inbox shows a later event again.
    { sql: "delete from inbox_dismissal where kind = 'rounds_over' and id = ?", args: [treeId] },
  ];
}

const TEXT_CHARACTERS = 1_000;
