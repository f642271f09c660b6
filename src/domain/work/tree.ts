import { z } from "zod";
import { id, parseFlagOr, time } from "../call/field.ts";
import { buildPageQuery } from "../call/page.ts";
import { TREE_PUSH_STATES } from "../call/vocabulary.ts";

/** Size of a diff, whose rest is cut. */
export const DIFF_MAX_BYTES = 2 * 1024 * 1024;
const SLUG_MAX_CHARACTERS = 40;
// The random part of an id.
const SHORT_ID_CHARACTERS = 8;

/** A branch of a worker's repository, with the worktree of a conversation or a task. */
export const treeSchema = z.strictObject({
  id,
  worker_id: id,
  session_key: z.string().meta({ description: "its conversation; empty for a task" }),
  task_id: z.string().meta({ description: "its task; empty for a conversation" }),
  branch: z.string().meta({ examples: ["svc/ada/0af35b1c"] }),
  base: z.string().meta({ description: "the branch of the repository where it starts" }),
  base_commit: z.string(),
  head_commit: z.string().meta({ description: "its latest commit; empty before its first run has ended" }),
  pushed_commit: z.string().meta({ description: "the commit that was pushed last; empty for none" }),
  push: z.enum(TREE_PUSH_STATES).meta({ description: "the state of its push; empty for none" }),
  push_error: z.string(),
  execution_id: z.string().meta({ description: "the latest run on it" }),
  dirty: z.boolean().meta({
    description: "whether a run works there, or left changes that are not committed",
  }),
  bytes: z.int().meta({ description: "size of its worktree after the latest run" }),
  removed_at: time.nullable().meta({ description: "when its worktree was removed; its branch stays" }),
  created_at: time,
  updated_at: time,
}).meta({ id: "Tree" });
export type Tree = z.output<typeof treeSchema>;

export const treeListQuery = buildPageQuery();

/** The changes of a run. */
export const diffStatSchema = z.strictObject({
  branch: z.string(),
  base_commit: z.string(),
  head_commit: z.string(),
  files_changed: z.int(),
  insertions: z.int(),
  deletions: z.int(),
  files: z.array(z.strictObject({
    path: z.string(),
    insertions: z.int().nullable().meta({ description: "null for a binary file" }),
    deletions: z.int().nullable(),
  })),
  truncated: z.boolean().meta({ description: "whether more files changed than these" }),
}).meta({ id: "DiffStat" });
export type DiffStat = z.output<typeof diffStatSchema>;

export const diffQuery = {
  stat: parseFlagOr(false, "the changed files and lines as JSON instead of the diff"),
  since: z.enum(["run", "base"]).default("run").meta({
    description: "run: the changes of this run; base: all changes of its branch until the end of this run",
  }),
};

/** Returns the branch of a new tree: `svc/<worker>/<short id>`. */
export function buildBranchName(workerName: string, treeId: string): string {
  const slug = workerName.normalize("NFKD").toLowerCase().replace(/[^a-z0-9]+/g, "-").slice(
    0,
    SLUG_MAX_CHARACTERS,
  )
    .replace(/^-+|-+$/g, "");
  return `svc/${slug || "worker"}/${getShortId(treeId)}`;
}

/** Returns the part of an id that names its worktree and branch. */
export function getShortId(treeId: string): string {
  return treeId.slice(-SHORT_ID_CHARACTERS);
}
