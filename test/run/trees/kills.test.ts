import { join } from "node:path";
import { expect, it, vi } from "vitest";
import type { FaultPoint } from "../../../src/base/fault_point.ts";
import { runScenario, type World } from "../../harness/model/scenario.ts";
import type { Json } from "../../harness/service/client.ts";
import { git, startGitServer } from "../../harness/service/git_server.ts";
import { createTempDir } from "../../harness/service/process.ts";
import { waitForValue } from "../../harness/wait.ts";

// Each round starts a service twice. With SVC_TEST_FAULT_SEEDS each point has this number of rounds, else a few points have one.
const SEEDS = Deno.env.get("SVC_TEST_FAULT_SEEDS");
const ROUNDS = Number(SEEDS ?? 1);
const POINTS_PER_RUN = 3;
const POINTS = [
  ...["tree.fetched", "tree.made", "tree.started", "spawn.post", "exit.seen"],
  ...["tree.packed", "tree.imported", "tree.moved", "outcome.pre-commit", "outcome.post-commit"],
  ...["push.pre", "push.post"],
] as FaultPoint[];
const chosen = SEEDS === undefined
  ? POINTS.toSorted(() => Math.random() - 0.5).slice(0, POINTS_PER_RUN)
  : POINTS;
// Leaves a commit of the agent, an uncommitted file, and the lock of a killed git.
const SCRIPT = `echo 1 > "own-$SVC_EXECUTION_ID" && git add -A && git commit -qm own &&
  echo 2 > "left-$SVC_EXECUTION_ID" && touch .git/index.lock`;

vi.setConfig({ testTimeout: 120_000 + ROUNDS * 60_000 });

it.each(chosen)(
  `a kill at %s leaves no lock and loses no commit, and the next run works: ${ROUNDS} kills [WSP-1]`,
  async (point) => {
    await using folder = await createTempDir();
    await using forge = await startGitServer({ dir: folder.path });
    await runScenario<{ worker: string }>({
      env: {
        SVC_ENGINES__DEFAULT: "shell",
        SVC_ENGINES__SHELL__KIND: "command",
        SVC_ENGINES__SHELL__COMMAND: "/bin/sh",
        SVC_LIMITS__MAX_ATTEMPTS: "3",
      },
      rounds: ROUNDS,
      fault: { kind: "point", point, passage: 1 },
      setup: async ({ api }) => {
        const repo = { url: forge.url, push: "auto" };
        return { worker: (await api.call("POST /api/workers", { name: "Ada", repo })).id };
      },
      action: async ({ api }, { worker }, round) => {
        await createRun(api, worker, round).catch(() => {});
      },
      restarted: async (world, { worker }, round) => {
        await waitUntilEnded(world, worker);
        // The client may have got no answer, so the task may not exist.
        await createRun(world.api, worker, round);
        await waitUntilEnded(world, worker);
        const tree: Json = await waitForValue(async () => {
          const trees: Json[] = await world.api.call(`GET /api/workers/${worker}/trees`);
          const found = trees.find(({ session_key }) => session_key.endsWith(`round-${round}`));
          return found?.push === "" && found.pushed_commit === found.head_commit ? found : null;
        });
        const top = join(world.dataDir, "trees", worker);
        const worktree = join(top, "work", tree.id.slice(-8));
        const files = [...Deno.readDirSync(worktree)].map(({ name }) => name).filter((name) =>
          name !== ".git"
        );
        const pushed = await git(forge.dir, "ls-tree", "--name-only", tree.branch);
        expect(pushed.split("\n").sort()).toEqual(files.sort());
        expect(await git(forge.dir, "rev-parse", tree.branch)).toBe(tree.head_commit);
        expect(await listLocks(top)).toEqual([]);
        await git(join(top, "mirror.git"), "fsck", "--connectivity-only");
        const runs: Json[] = await world.api.call(`GET /api/executions?worker_id=${worker}`);
        for (
          const { id, head_commit } of runs.filter((run) => run.head_commit !== "" && run.tree_id === tree.id)
        ) {
          expect(files).toContain(`left-${id}`);
          await git(forge.dir, "merge-base", "--is-ancestor", head_commit, tree.branch);
        }
      },
      check: () => Promise.resolve(),
    });
  },
);

async function createRun(api: World["api"], worker: string, round: number): Promise<void> {
  const body = { message_id: `round-${round}`, worker_id: worker, instruction: SCRIPT, type: "immediate" };
  await api.call("POST /api/tasks", body);
}

async function waitUntilEnded({ api }: World, worker: string): Promise<void> {
  const ended = async () =>
    (await api.call(`GET /api/tasks?worker_id=${worker}&status=pending,running`)).length === 0 ? true : null;
  await waitForValue(ended);
  const failed: Json[] = await api.call(`GET /api/tasks?worker_id=${worker}&status=failed,cancelled`);
  expect(failed.map(({ reason }) => reason)).toEqual([]);
}

async function listLocks(folder: string): Promise<string[]> {
  const found: string[] = [];
  for await (const { name, isDirectory } of Deno.readDir(folder)) {
    const path = join(folder, name);
    if (isDirectory) found.push(...await listLocks(path));
    else if (/\.lock$|^tmp_|^\.(new|old)-/.test(name)) found.push(path);
  }
  return found;
}
