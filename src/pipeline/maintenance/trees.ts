// Removes worktrees that no run has used for `retention.trees`, and the files of skills that no worker has. Branches stay. Packs mirrors.
import { join } from "node:path";
import { createLogger } from "../../base/log.ts";
import { type DataPaths, getMirrorDir, getTreeDir, SENT_PREFIX } from "../../base/paths.ts";
import { WAKEUP } from "../../base/wakeups.ts";
import { getShortId } from "../../domain/work/tree.ts";
import { type Mirrors, packMirror, removeWorktree } from "../../files/git/mirror.ts";
import type { SkillStore } from "../../files/skills.ts";
import { record } from "../../store/events/journal.ts";
import { listIdleTrees, listTreeIds, markTreeRemoved, sumTreeBytes } from "../../store/work/tree.ts";
import { listAllSkills } from "../../store/workers/worker.ts";
import { Stage, type StageServices } from "../stage/stage.ts";

const log = createLogger("retention");
const POLL_MS = 10 * 60_000;
const TREES_PER_ROUND = 50;
const ORPHAN_AGE_MS = 60 * 60_000;
const PACK_EVERY_MS = 24 * 60 * 60_000;
const STALLED_MS = 15 * 60_000;

interface TreeStageOptions extends StageServices {
  paths: DataPaths;
  mirrors: Mirrors;
  skills: SkillStore;
  /** Age of an idle worktree, in ms. */
  retentionMs: number;
  maxBytes: number;
}

/** Creates the stage that removes idle worktrees: the old ones, and the longest idle ones while all together exceed their limit. */
export function createTreeStage(options: TreeStageOptions): Stage {
  const { db, clock, retentionMs, maxBytes } = options;
  // The time of the last packing of each worker's mirror, in ms.
  const packedAt = new Map<string, number>();
  return new Stage(options, {
    name: "trees",
    wakeup: WAKEUP.trees,
    pollMs: POLL_MS,
    stalledMs: STALLED_MS,
    step,
  });

  async function step(signal: AbortSignal): Promise<number> {
    const isFull = await sumTreeBytes(db) >= maxBytes;
    const before = isFull ? clock.now() : clock.now() - retentionMs;
    const idle = await listIdleTrees(db, before, isFull ? 1 : TREES_PER_ROUND);
    for (const tree of idle) await remove(options, tree);
    if (idle.length > 0) return 0;
    await removeOrphans(options);
    await removeUnusedSkills(options);
    await packMirrors(options, packedAt, signal);
    return Infinity;
  }
}

type IdleTree = Awaited<ReturnType<typeof listIdleTrees>>[number];

// The row first: a run that starts meanwhile makes the worktree anew.
async function remove(options: TreeStageOptions, tree: IdleTree): Promise<void> {
  const { db, clock, paths, mirrors } = options;
  const { id, worker_id, updated_at } = tree;
  await mirrors.use(getMirrorDir(paths, worker_id), async () => {
    const now = clock.now();
    const { won } = await db.write([
      ...markTreeRemoved(id, updated_at, now),
      record(now, { kind: "tree.removed", worker_id, data: { tree_id: id } }),
    ]);
    if (won) await removeWorktree(getTreeDir(paths, worker_id, getShortId(id)));
  });
}

// A kill between the row and the directory leaves a directory without a row.
async function removeOrphans({ db, clock, paths, mirrors }: TreeStageOptions): Promise<void> {
  for (const worker of await listNames(paths.trees)) {
    await removeSent(join(paths.trees, worker), clock.now());
    const known = new Set((await listTreeIds(db, worker)).map(getShortId));
    const folder = join(paths.trees, worker, "work");
    for (const name of known.size === 0 ? [] : await listNames(folder)) {
      if (known.has(name) || name.startsWith(".")) continue;
      const age = clock.now() - ((await Deno.lstat(join(folder, name))).mtime?.getTime() ?? 0);
      if (age < ORPHAN_AGE_MS) continue;
      log.info("Removing the worktree {path}, which belongs to no branch", { path: join(folder, name) });
      await mirrors.use(getMirrorDir(paths, worker), () => removeWorktree(join(folder, name)));
    }
  }
}

// A runner that lost its run has sent a part of its commits.
async function removeSent(top: string, now: number): Promise<void> {
  for (const name of await listNames(top)) {
    if (!name.startsWith(SENT_PREFIX)) continue;
    const age = now - ((await Deno.lstat(join(top, name))).mtime?.getTime() ?? 0);
    if (age >= ORPHAN_AGE_MS) await Deno.remove(join(top, name));
  }
}

// A younger one may belong to a request that has not been committed.
async function removeUnusedSkills({ db, clock, skills }: TreeStageOptions): Promise<void> {
  const used = new Set((await listAllSkills(db)).map(({ digest }) => digest));
  await skills.removeUnused(used, clock.now() - ORPHAN_AGE_MS);
}

// Each run adds a few loose objects. Thousands of them would slow every command of git down.
async function packMirrors(
  { clock, paths, mirrors }: TreeStageOptions,
  packedAt: Map<string, number>,
  signal: AbortSignal,
): Promise<void> {
  for (const worker of await listNames(paths.trees)) {
    if (signal.aborted) return;
    const mirror = getMirrorDir(paths, worker);
    if (clock.now() - (packedAt.get(worker) ?? 0) < PACK_EVERY_MS) continue;
    packedAt.set(worker, clock.now());
    await mirrors.use(mirror, () => Promise.resolve());
    await packMirror(mirror, signal).catch((error) => {
      if (!signal.aborted) log.warning("Cannot pack the repository {mirror}: {error}", { mirror, error });
    });
  }
}

async function listNames(folder: string): Promise<string[]> {
  try {
    return (await Array.fromAsync(Deno.readDir(folder))).map(({ name }) => name);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return [];
    throw error;
  }
}
