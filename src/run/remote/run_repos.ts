// The branches of runs on runners: sent before the run, and moved by its end (contract 33.11).
import { dirname, join } from "node:path";
import { faultPoint } from "../../base/fault_point.ts";
import { createLogger } from "../../base/log.ts";
import { type DataPaths, getMirrorDir, getTreeDir, SENT_PREFIX } from "../../base/paths.ts";
import { ServiceError } from "../../domain/call/error.ts";
import { getShortId, type Tree } from "../../domain/work/tree.ts";
import { REPO_MAX_BYTES, type RunRepoPart } from "../../domain/workers/runner.ts";
import { importBundle, openBranchBundle } from "../../files/git/bundle.ts";
import { readStat } from "../../files/git/diff.ts";
import { GitError } from "../../files/git/git_error.ts";
import { findCommit, type Mirrors, removeWorktree, setBranch } from "../../files/git/mirror.ts";
import { LogCopies } from "../../files/log_copy.ts";
import type { TreeEnd } from "../../store/work/tree.ts";
import { type RemoteRunRow, storeRunCommit } from "../../store/workers/remote_run.ts";
import {
  type BranchOptions,
  type BranchStart,
  buildTreeEnd,
  prepareBranch,
  recordBranch,
  requireTree,
} from "../branches.ts";
import { SetupError } from "../variables.ts";

const log = createLogger("runner");

interface RunRepoOptions extends BranchOptions {
  paths: DataPaths;
  mirrors: Mirrors;
}

type PreparedTree = Awaited<ReturnType<typeof requireTree>> & { mirror: string };

/** Sends branches to runners and takes the commits of their runs. The callers check that the runner has the run. */
export class RunRepos {
  readonly #options: RunRepoOptions;
  readonly #parts = new LogCopies(REPO_MAX_BYTES);
  /** Imports in progress by execution. */
  readonly #imports = new Map<string, Promise<void>>();

  constructor(options: RunRepoOptions) {
    this.#options = options;
  }

  /**
   * Prepares the branch of a run and opens a bundle of it. Throws `conflict` with the reason when the run cannot have it, and `unavailable`
   * when `signal` aborts.
   */
  async open(row: RemoteRunRow, signal: AbortSignal): Promise<{ file: Deno.FsFile; size: number }> {
    const { mirrors } = this.#options;
    try {
      const place = await this.#find(row);
      const { mirror, tree } = place;
      const { commit, base, baseCommit } = await mirrors.use(mirror, () => this.#prepare(row, place, signal));
      return await openBranchBundle(mirror, { branch: tree.branch, commit, base, baseCommit });
    } catch (error) {
      if (signal.aborted) throw new ServiceError("unavailable", "Cannot send the branch: the service stops");
      const words = error instanceof SetupError
        ? error.message
        : error instanceof GitError
        ? `Cannot prepare the worktree: ${error.message}.`
        : null;
      if (words === null) throw error;
      throw new ServiceError("conflict", words);
    }
  }

  async #find(row: RemoteRunRow): Promise<PreparedTree> {
    const { db, paths } = this.#options;
    return { ...await requireTree(db, row), mirror: getMirrorDir(paths, row.worker_id) };
  }

  async #prepare(row: RemoteRunRow, place: PreparedTree, signal: AbortSignal): Promise<BranchStart> {
    const { db, clock } = this.#options;
    const { tree, mirror } = place;
    await this.#removeWorktree(tree);
    const known = await findCommit(mirror, `refs/heads/${tree.branch}`);
    const start = await prepareBranch(this.#options, { ...place, signal }, known);
    const { won } = await db.write([
      ...storeRunCommit(row.execution_id, row.epoch, { base_commit: start.commit }),
      ...recordBranch(this.#options, tree, start, tree.removed_at ?? clock.now()),
    ]);
    if (!won) throw new ServiceError("conflict", `Cannot send the branch: run ${row.execution_id} was lost`);
    return start;
  }

  // The worktree of a run on this machine would be behind the branch after this run.
  async #removeWorktree(tree: Tree): Promise<void> {
    const path = getTreeDir(this.#options.paths, tree.worker_id, getShortId(tree.id));
    const exists = await Deno.lstat(path).then(() => true, () => false);
    if (!exists) return;
    if (tree.dirty) {
      throw new SetupError(
        `Cannot send ${tree.branch} to a runner: its worktree on the service's machine has changes that are not committed. ` +
          "Set runs_on of the worker to [] for one more run there, or discard the branch with svc ctl execution discard.",
      );
    }
    await removeWorktree(path);
  }

  /** Stores a part of the bundle with the commits of a run, and takes the commits when it is complete. Returns the next expected offset. */
  async receive(row: RemoteRunRow, { offset, size }: RunRepoPart, bytes: Uint8Array): Promise<number> {
    const { execution_id: id } = row;
    if (size > REPO_MAX_BYTES) {
      throw new ServiceError(
        "payload_too_large",
        `Cannot accept the commits: they have ${size} bytes, and a run may send ${REPO_MAX_BYTES}`,
      );
    }
    if (row.base_commit === "" || offset + bytes.length > size) {
      throw new ServiceError(
        "invalid_request",
        "Cannot accept the commits: they do not belong to the branch",
      );
    }
    // All parts have arrived before.
    if (row.head_commit !== "") return size;
    const { mirrors, paths } = this.#options;
    const mirror = getMirrorDir(paths, row.worker_id);
    const path = join(dirname(mirror), `${SENT_PREFIX}${id}`);
    const next = await this.#parts.append(path, offset, bytes);
    faultPoint("repo.part");
    if (next < size) return next;
    const importing = this.#imports.get(id) ?? mirrors.use(mirror, () => Promise.resolve())
      .then(() => this.#import(row, mirror, path)).finally(() => this.#imports.delete(id));
    this.#imports.set(id, importing);
    await importing;
    return size;
  }

  async #import(row: RemoteRunRow, mirror: string, path: string): Promise<void> {
    const { execution_id: id, base_commit: before } = row;
    const { tree } = await this.#find(row);
    const head = await importBundle(mirror, path, { branch: tree.branch, before }).catch(async (error) => {
      if (!(error instanceof GitError) || error.failure === "full") throw error;
      await Deno.remove(path);
      log.warning("Cannot accept the commits of run {id}: {error}", { id, error: error.message });
      throw new ServiceError("invalid_request", `Cannot accept the commits: ${error.message}`);
    });
    faultPoint("repo.imported");
    const { won } = await this.#options.db.write(storeRunCommit(id, row.epoch, { head_commit: head }));
    await Deno.remove(path);
    if (!won) throw new ServiceError("conflict", `Cannot accept the commits: run ${id} was lost`);
    faultPoint("repo.stored");
  }

  /**
   * Moves the branch to the commits of a run while `store` writes its end. `store` gets the changes, or null without any, and returns
   * whether it has written them. If not, the branch moves back.
   */
  async move(row: RemoteRunRow, store: (tree: TreeEnd | null) => Promise<boolean>): Promise<boolean> {
    if (row.base_commit === "") return await store(null);
    const place = await this.#find(row).catch((error) => {
      if (error instanceof SetupError) return null;
      throw error;
    });
    // The worker was deleted.
    if (place === null) return await store(null);
    return await this.#options.mirrors.use(place.mirror, () => moveBranch(row, place, store));
  }
}

async function moveBranch(
  { execution_id: id, base_commit: before, head_commit }: RemoteRunRow,
  place: PreparedTree,
  store: (tree: TreeEnd | null) => Promise<boolean>,
): Promise<boolean> {
  const { mirror, tree: { branch } } = place;
  const head = head_commit || before;
  const tip = await findCommit(mirror, `refs/heads/${branch}`);
  // A restore or a takeover has another mirror.
  if (tip !== before && tip !== head) {
    log.warning("The changes of run {id} are lost: {branch} is not where it was", { id, branch });
    return await store(null);
  }
  // After a kill, the branch has moved already.
  const moves = tip !== head;
  if (moves) await setBranch(mirror, branch, head, before);
  faultPoint("tree.moved");
  const counts = await readStat(mirror, { base: before, head });
  const stored = await store({ ...buildTreeEnd(place, { before, head }, counts), bytes: 0, isClean: null });
  // The runner has lost the run meanwhile.
  if (!stored && moves) await setBranch(mirror, branch, before, head);
  return stored;
}
