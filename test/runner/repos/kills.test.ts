import { join } from "node:path";
import { expect, it, vi } from "vitest";
import type { FaultPoint } from "../../../src/base/fault_point.ts";
import { runScenario, type World } from "../../harness/model/scenario.ts";
import type { Json } from "../../harness/service/client.ts";
import { git, startGitServer } from "../../harness/service/git_server.ts";
import { createTempDir } from "../../harness/service/process.ts";
import { startRunner, waitUntilOnline } from "../../harness/service/runner.ts";
import { openTreeApp } from "../../harness/service/tree_app.ts";
import { runAway, startTreeRunner, waitUntilTaskEnded } from "../../harness/service/tree_runner.ts";
import { createScriptTask } from "../../harness/service/tree_app.ts";
import { waitForValue, waitUntil } from "../../harness/wait.ts";

// With SVC_TEST_FAULT_SEEDS each point has a round, else a few points.
const POINTS_PER_RUN = 5;
const POINTS = [
  ...["claim.post", "tree.fetched", "pid.recorded", "repo.part", "repo.imported", "repo.stored"],
  ...["tree.moved", "outcome.pre-commit", "outcome.post-commit"],
] as FaultPoint[];
const chosen = Deno.env.get("SVC_TEST_FAULT_SEEDS") === undefined
  ? POINTS.toSorted(() => Math.random() - 0.5).slice(0, POINTS_PER_RUN)
  : POINTS;
const SCRIPT = `echo 1 > "own-$SVC_EXECUTION_ID" && git add -A && git commit -qm own &&
  echo 2 > "left-$SVC_EXECUTION_ID"`;

vi.setConfig({ testTimeout: 240_000 });

it.each(chosen)(
  "a kill of the service at %s: the run on a runner continues, and its branch moves once [RUN-3, WSP-1]",
  async (point) => {
    await using folder = await createTempDir();
    await using forge = await startGitServer({ dir: folder.path });
    await runScenario<{ worker: string }>({
      keepsPort: true,
      rounds: 1,
      fault: { kind: "point", point, passage: 1 },
      setup: async (world) => {
        const { api, server: { url } } = world;
        const { token } = await api.call("POST /api/runners", { name: "r1", labels: ["x"] });
        const config = "engines: { default: shell, shell: { kind: command, command: /bin/sh, shell: [] } }\n";
        world.use(await startRunner({ token, url, root: world.path("r1"), config }));
        await waitUntilOnline(api, "r1");
        const fields = { name: "Ada", repo: { url: forge.url }, runs_on: ["x"], engine: "shell" };
        return { worker: (await api.call("POST /api/workers", fields)).id };
      },
      action: async ({ api }, { worker }) => {
        await waitUntilOnline(api, "r1");
        await createTask(api, worker).catch(() => {});
      },
      check: async (world, { worker }) => {
        const { api } = world;
        // The client may have got no answer, so the task may not exist.
        await waitUntilAllEnded(api, worker);
        await waitUntilTaskEnded(api, (await createTask(api, worker)).id);
        await waitUntilAllEnded(api, worker);
        const [tree]: Json[] = await api.call(`GET /api/workers/${worker}/trees`);
        const runs: Json[] = await api.call(`GET /api/executions?worker_id=${worker}`);
        expect(runs.map(({ status, attempt, files_changed }) => [status, attempt, files_changed])).toEqual(
          runs.map(() => ["completed", 1, 2]),
        );
        // The newest run comes first.
        const bases = runs.map(({ base_commit }) => base_commit);
        expect(runs.map(({ head_commit }) => head_commit)).toEqual([tree.head_commit, ...bases.slice(0, -1)]);
        const top = join(world.dataDir, "trees", worker);
        const mirror = join(top, "mirror.git");
        expect(await git(mirror, "rev-parse", tree.branch)).toBe(tree.head_commit);
        const files = await git(mirror, "ls-tree", "--name-only", tree.branch);
        for (const { id } of runs) expect(files).toContain(`own-${id}`);
        for (const { id } of runs) expect(files).toContain(`left-${id}`);
        expect(await git(mirror, "rev-list", "--count", `${tree.base_commit}..${tree.branch}`)).toBe(
          `${runs.length * 2}`,
        );
        expect([...Deno.readDirSync(top)].map(({ name }) => name).sort()).toEqual(["mirror.git", "work"]);
        await git(mirror, "fsck", "--connectivity-only");
        const trees = join(world.path("r1"), "trees");
        await waitUntil(
          "the runner has removed its worktrees",
          () => [...Deno.readDirSync(trees)].length === 0,
        );
      },
    });
  },
);

it("a kill of the runner loses what it has not sent, and the next attempt starts from the branch [WSP-1]", async () => {
  await using world = await openTreeApp({ worker: { runs_on: ["x"] } });
  const runner = await startTreeRunner(world);
  const first = await runAway(world, "echo 1 > first");
  const flag = await Deno.makeTempFile();
  const task = await createScriptTask(world.app, world.ada.id, {
    script: `ls; if [ -s ${flag} ]; then exit 0; fi; echo > lost; echo started > ${flag}; sleep 100`,
    conversation: "one",
  });
  await waitUntil("it runs", async () => (await Deno.stat(flag)).size > 0);
  const trees = join(runner.root, "trees");
  expect([...Deno.readDirSync(trees)].length).toBe(1);
  await runner.end("SIGKILL");
  const token = join(runner.root, "../root.token");
  await using again = await startRunner({
    ...{ token: await Deno.readTextFile(token), url: world.app.url, root: runner.root },
    config: "engines: { default: shell, shell: { kind: command, command: /bin/sh, shell: [] } }\n",
  });
  const run = await waitUntilTaskEnded(world.app, task.id);
  await Deno.remove(flag);
  expect(run).toMatchObject({
    status: "completed",
    attempt: 2,
    base_commit: first.head_commit,
    files_changed: 0,
  });
  expect(run.result).toContain("first");
  expect(run.result).not.toContain("lost");
  await waitUntil(
    "its directories are gone",
    () => [...Deno.readDirSync(join(again.root, "trees"))].length === 0,
  );
});

async function createTask(api: World["api"], worker: string): Promise<Json> {
  const body = { message_id: "one", worker_id: worker, instruction: SCRIPT, type: "immediate" };
  return await api.call("POST /api/tasks", body);
}

async function waitUntilAllEnded(api: World["api"], worker: string): Promise<void> {
  await waitForValue(async () =>
    (await api.call(`GET /api/tasks?worker_id=${worker}&status=pending,running`)).length === 0 ? true : null
  );
}
