// Branches of workers' repositories, with their worktrees (contract 26).
import { WAKEUP } from "../../base/wakeups.ts";
import type { Json } from "../../domain/call/json.ts";
import type { Listing, Page } from "../../domain/call/page.ts";
import { ALLOW } from "../../domain/call/vocabulary.ts";
import { buildBranchName, type Tree, treeSchema } from "../../domain/work/tree.ts";
import { buildSet, type Database, guard, type Statement } from "../db/database.ts";
import { buildJsonSql, readJson } from "../db/json_projection.ts";
import { list, parseNullableJson } from "../db/list.ts";

const TREES = {
  table: "tree",
  json: buildJsonSql("tree", treeSchema, {
    session_key: "iif(substr(tree.lane, 1, 8) = 'session:', substr(tree.lane, 9), '')",
    task_id: "iif(substr(tree.lane, 1, 5) = 'task:', substr(tree.lane, 6), '')",
  }),
  texts: ["push_error"],
};

interface TreeRun {
  execution_id: string;
  worker_id: string;
  worker_name: string;
  tree_id?: string;
}

/** Stores the tree of a run that is claimed, and marks its worktree as in use. A run on a runner uses no worktree of this machine. */
export function openTree(
  run: TreeRun,
  lane: string,
  { now, isRemote }: { now: number; isRemote: boolean },
): Statement {
  const { tree_id = "", worker_id, worker_name, execution_id } = run;
  return {
    sql:
      `insert into tree (id, worker_id, lane, branch, dirty, removed_at, execution_id, created_at, updated_at)
      values (?, ?, ?, ?, ?, ?, ?, ?, ?)
      on conflict (worker_id, lane) do update set
        dirty = max(dirty, excluded.dirty), execution_id = excluded.execution_id, updated_at = excluded.updated_at`,
    args: [
      ...[tree_id, worker_id, lane, buildBranchName(worker_name, tree_id)],
      ...[!isRemote, isRemote ? now : null, execution_id, now, now],
    ],
  };
}

/** Whether a question about a push is open or has been answered. */
export async function hasAskedPush(db: Database): Promise<boolean> {
  return await db.first("select 1 as one from tree where push = 'asked' limit 1") !== null;
}

export async function findTree(db: Database, id: string): Promise<Tree | null> {
  return parseNullableJson(await findTreeJson(db, id));
}

export function findTreeJson(db: Database, id: string): Promise<Json<Tree> | null> {
  return readJson(db, TREES.json, "from tree where id = ?", [id]);
}

/** Lists the trees of a worker, newest first. */
export function listTrees(db: Database, workerId: string, page: Page): Promise<Listing<Tree>> {
  return list(db, { ...TREES, where: { conditions: ["tree.worker_id = ?"], args: [workerId] } }, page);
}

/** Stores where a branch starts, and whether it has a worktree on this machine. */
export function startTree(
  id: string,
  start: Pick<Tree, "base" | "base_commit" | "head_commit" | "removed_at">,
  now: number,
): Statement {
  const { sql, args } = buildSet({ ...start, updated_at: now });
  return { sql: `update tree set ${sql} where id = ?`, args: [...args, id] };
}

/** The changes of a run on its tree. */
export interface TreeEnd {
  tree_id: string;
  branch: string;
  base_commit: string;
  head_commit: string;
  files_changed: number;
  insertions: number;
  deletions: number;
  bytes: number;
  /** Whether all changes are in commits of the branch. null for a run on a runner, which leaves no worktree. */
  isClean: boolean | null;
  /** The push that follows, by the settings of the worker. */
  push: "" | "ask" | "wanted";
}

/** Stores the changes of a run with its outcome. A push of earlier changes that is open gets the new ones. */
export function endTree(executionId: string, end: TreeEnd, now: number): Statement[] {
  const { tree_id, branch, base_commit, head_commit, files_changed, insertions, deletions } = end;
  const row = buildSet({ branch, base_commit, head_commit, files_changed, insertions, deletions });
  return [
    { sql: `update execution set ${row.sql} where id = ?`, args: [...row.args, executionId] },
    {
      sql: `update tree
        set head_commit = ?, bytes = ?, dirty = coalesce(?, dirty), updated_at = ?,
          push = iif(? = '' or pushed_commit = ?, push, ?), push_error = iif(? = '', push_error, '')
        where id = ?`,
      args: [
        head_commit,
        end.bytes,
        end.isClean === null ? null : !end.isClean,
        now,
        end.push,
        head_commit,
        end.push,
        end.push,
        tree_id,
      ],
      wakeup: WAKEUP.push,
    },
  ];
}

/** Frees the new tree of a run whose agent did not start. A tree with earlier runs may have changes that were not taken over. */
export function freeNewTree(executionId: string): Statement {
  return {
    sql: `update tree set dirty = 0
      where execution_id = ? and created_at = (select created_at from execution where id = ?)`,
    args: [executionId, executionId],
  };
}

/** A tree whose push needs work, with what a question needs. */
export interface DuePush extends Pick<Tree, "id" | "worker_id" | "branch" | "base_commit" | "head_commit"> {
  pushed_commit: string;
  push: Tree["push"];
  question_id: string;
  execution_id: string;
  task_id: string;
  message_id: string;
  session_key: string;
  worker_name: string;
}

/** Lists trees with a push to ask about or to do, and those whose question is answered. */
export function listDuePushes(db: Database, limit: number): Promise<DuePush[]> {
  return db.read<DuePush>(
    `select tree.id, tree.worker_id, tree.branch, tree.base_commit, tree.head_commit, tree.pushed_commit, tree.push,
      tree.question_id, tree.execution_id, coalesce(execution.task_id, '') as task_id,
      coalesce(execution.message_id, '') as message_id, coalesce(execution.worker_name, '') as worker_name,
      coalesce(nullif(task.deliver_to, ''), execution.session_key, '') as session_key
    from tree
    left join execution on execution.id = tree.execution_id
    left join task on task.id = execution.task_id
    where tree.push in ('ask', 'wanted')
    order by tree.id
    limit ?`,
    [limit],
  );
}

/** asked -> wanted or '': the question about a push has ended. */
export function takePushAnswers(): Statement {
  return {
    sql: `update tree
      set push = iif((select status = 'answered' and answer = ? from question where id = question_id), 'wanted', '')
      where push = 'asked' and not exists (
        select 1 from question where question.id = question_id and question.status = 'open')`,
    args: [ALLOW],
  };
}

/** ask -> asked. Guarded. */
export function markPushAsked(id: string, questionId: string): Statement[] {
  return guard("update tree set push = 'asked', question_id = ? where id = ? and push = 'ask'", [
    questionId,
    id,
  ]);
}

/** Requests a push, guarded by the tree being there. */
export function requestPush(id: string, now: number): Statement[] {
  const sql = "update tree set push = 'wanted', push_error = '', updated_at = ? where id = ?";
  return guard(sql, [now, id], WAKEUP.push);
}

/** wanted -> '': the commit is in the remote repository. */
export function markPushed(id: string, commit: string, now: number): Statement {
  return {
    // A run may have ended meanwhile.
    sql:
      `update tree set push = iif(head_commit = ?, '', push), push_error = '', pushed_commit = ?, updated_at = ?
      where id = ?`,
    args: [commit, commit, now, id],
  };
}

/** wanted -> failed or blocked. */
export function markPushFailed(
  id: string,
  { push, push_error }: Pick<Tree, "push" | "push_error">,
  now: number,
): Statement {
  const sql =
    "update tree set push = ?, push_error = ?, updated_at = ? where id = ? and push in ('ask', 'wanted')";
  return { sql, args: [push, push_error, now, id] };
}

/** Removes a tree, guarded by no run and no gate working on it and by its latest commit. */
export function deleteTree(id: string, headCommit: string): Statement[] {
  return guard(
    `delete from tree
    where id = ? and head_commit = ? and not exists (
      select 1
      from execution
      where execution.id = tree.execution_id and execution.status in ('pending', 'running'))
    and not exists (
      select 1
      from occurrence
      join task on task.id = occurrence.task_id
      where occurrence.status = 'gating' and task.worker_id = tree.worker_id and task.lane = tree.lane)`,
    [id, headCommit],
  );
}

/** Marks the worktree as removed. Guarded: a run may have started. */
export function markTreeRemoved(id: string, updatedAt: number, now: number): Statement[] {
  return guard(
    "update tree set removed_at = ?, bytes = 0 where id = ? and dirty = 0 and updated_at = ? and removed_at is null",
    [now, id, updatedAt],
  );
}

/** Lists worktrees that no run has used since `before`, the oldest first. */
export function listIdleTrees(
  db: Database,
  before: number,
  limit: number,
): Promise<Pick<Tree, "id" | "worker_id" | "updated_at">[]> {
  return db.read(
    `select id, worker_id, updated_at
    from tree
    where removed_at is null and dirty = 0 and updated_at < ?
    order by updated_at
    limit ?`,
    [before, limit],
  );
}

/** Lists the ids of the trees of a worker that have a worktree. */
export function listTreeIds(db: Database, workerId: string): Promise<string[]> {
  return db.readColumn<string>("select id from tree where worker_id = ? and removed_at is null", [workerId]);
}

/** Counts the branches of a worker with commits that were not pushed. */
export async function countUnpushedTrees(db: Database, workerId: string): Promise<number> {
  return await db.readValue<number>(
    `select count(*) as trees
    from tree
    where worker_id = ? and base_commit <> '' and (dirty = 1 or head_commit not in (base_commit, pushed_commit))`,
    [workerId],
  ) ?? 0;
}

/** Sums the sizes of the worktrees. */
export async function sumTreeBytes(db: Database): Promise<number> {
  return await db.readValue<number>(
    "select coalesce(sum(bytes), 0) as bytes from tree where removed_at is null",
  ) ?? 0;
}

export function deleteWorkerTrees(workerId: string): Statement {
  return { sql: "delete from tree where worker_id = ?", args: [workerId] };
}
