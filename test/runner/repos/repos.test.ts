import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { git } from "../../harness/service/git_server.ts";
import { openTreeApp } from "../../harness/service/tree_app.ts";
import { runAway, startTreeRunner } from "../../harness/service/tree_runner.ts";
import { waitUntil } from "../../harness/wait.ts";

vi.setConfig({ testTimeout: 120_000 });

// A commit of the agent, files that it left, an ignored one, and a detached HEAD.
const SCRIPT =
  "git config user.name; git rev-parse --abbrev-ref HEAD; git diff --stat origin/main | wc -l; " +
  "echo ignored > .gitignore; echo 1 > own; git add -A; git commit -qm mine; git checkout -q --detach; " +
  "echo 2 > detached; git add detached; git commit -qm detached; echo 3 > left; echo no > ignored; rm src/one.txt";

describe("a worker with a repository on a runner (contract 33.10)", () => {
  it("works on its branch as on the service's machine, and leaves nothing on the runner", async () => {
    await using here = await openTreeApp();
    await using world = await openTreeApp({ worker: { runs_on: ["x"] } });
    await using runner = await startTreeRunner(world);
    const [local, away] = await Promise.all([here.run(SCRIPT), runAway(world, SCRIPT)]);
    expect(away.error).toBe("");
    const fields = (
      { status, result, branch, files_changed, insertions, deletions }: Record<string, string>,
    ) => ({
      status,
      result: result?.split("/").slice(0, 2),
      branch: branch?.slice(0, 8),
      files_changed,
      insertions,
      deletions,
    });
    expect(fields(away)).toEqual(fields(local));
    const diff = (of: typeof world, id: string) => of.app.call(`GET /api/executions/${id}/diff`);
    expect(await diff(world, away.id)).toBe(await diff(here, local.id));
    const log = (dir: string, { base_commit, head_commit }: Record<string, string>) =>
      git(dir, "log", "--format=%an|%cn|%s|%(trailers:key=Svc-Run)", `${base_commit}..${head_commit}`);
    const plain = (text: string) => text.replaceAll(/[0-9a-f-]{36}/g, "<id>");
    expect(plain(await log(world.getMirror(), away))).toBe(plain(await log(here.getMirror(), local)));
    expect(await git(world.getMirror(), "rev-parse", away.branch)).toBe(away.head_commit);
    expect(await world.findTree(away)).toMatchObject({
      ...{ head_commit: away.head_commit, dirty: false, bytes: 0 },
      removed_at: expect.any(Number),
    });
    await waitUntil(
      "the worktree is gone",
      () => [...Deno.readDirSync(join(runner.root, "trees"))].length === 0,
    );
    expect((await world.app.call(`GET /api/workers/${world.ada.id}`)).home).toBe("");
  });
});
