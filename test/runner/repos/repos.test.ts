import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { git } from "../../harness/service/git_server.ts";
import { createFakeRunner } from "../../harness/service/runner.ts";
import { createScriptTask, openTreeApp } from "../../harness/service/tree_app.ts";
import { runAway, startTreeRunner, waitUntilTaskEnded } from "../../harness/service/tree_runner.ts";
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
    const { status, body } = await world.app.send(`POST /api/workers/${world.ada.id}/rehome`, { home: "r1" });
    expect([status, body.detail]).toEqual([409, expect.stringContaining("has no home")]);
  });

  it("runs the tasks of a conversation one after another, on any runner", async () => {
    await using world = await openTreeApp({ worker: { runs_on: ["x"] } });
    await using one = await startTreeRunner(world, "r1");
    await using two = await startTreeRunner(world, "r2");
    const tasks: string[] = [];
    for (const script of ["pwd; sleep 1; echo first >> log", "pwd; cat log; echo second >> log"]) {
      tasks.push((await createScriptTask(world.app, world.ada.id, { script, conversation: "one" })).id);
    }
    const [first, second] = await Promise.all(tasks.map((id) => waitUntilTaskEnded(world.app, id)));
    expect([second.branch, second.base_commit]).toEqual([first.branch, first.head_commit]);
    expect(second.result.split("\n").slice(1)).toEqual(["first"]);
    const isFirstHere = second.result.startsWith(one.root);
    await world.app.call(`POST /api/runners/${isFirstHere ? "r1" : "r2"}/drain`);
    const third = await runAway(world, "pwd; cat log");
    expect(third.result.split("\n").slice(1)).toEqual(["first", "second"]);
    expect(third.result).toContain(isFirstHere ? two.root : one.root);
  });

  it("a check that fails goes back to the agent, and a push has the credentials that no runner gets [KEY-1]", async () => {
    const password = "ada:pass-word-of-ada";
    await using world = await openTreeApp({ password, repo: { push: "auto" }, worker: { runs_on: ["x"] } });
    await using runner = await startTreeRunner(world);
    const run = await runAway(
      world,
      `echo x >> made; env; cat .git/config; grep -rls "pass-word-[o]f-ada" ${"$(dirname $(dirname $PWD))"} && echo leaked; exit 0`,
      {
        verify: { command: ["sh", "-c", "test $(wc -l < made) = 2 && echo checked > checked"], attempts: 1 },
      },
    );
    expect(run).toMatchObject({ verify: { status: "passed", attempts: 2 }, files_changed: 2 });
    expect(run.result).not.toContain("leaked");
    expect(run.result).not.toContain("pass-word-of-ada");
    await world.app.until("tree.pushed");
    expect(await git(world.forge.dir, "rev-parse", run.branch)).toBe(run.head_commit);
    expect(await runner.end()).toBe(0);
  });

  it("a run that fails keeps its changes, and the next attempt continues with them", async () => {
    await using world = await openTreeApp({ worker: { runs_on: ["x"] } });
    await using _runner = await startTreeRunner(world);
    const failed = await runAway(world, "echo half > half; head -c 6000000 /dev/urandom > large; exit 3");
    expect(failed).toMatchObject({ status: "failed", failure: "exit_code", files_changed: 2 });
    const next = await runAway(world, "cat half; echo rest > rest");
    expect(next).toMatchObject({ result: "half", base_commit: failed.head_commit, files_changed: 1 });
    const since = await world.app.call(`GET /api/executions/${next.id}/diff?stat=true&since=base`);
    expect(since.files.map(({ path }: { path: string }) => path)).toEqual(["half", "large", "rest"]);
    await world.app.call(`POST /api/executions/${next.id}/discard`);
    expect(await runAway(world, "ls half")).toMatchObject({ status: "failed", files_changed: 0 });
  });

  it("a repository that cannot be fetched fails the run with the reason", async () => {
    await using world = await openTreeApp({ worker: { runs_on: ["x"] } });
    await using _runner = await startTreeRunner(world);
    world.forge.refuse = { status: 403 };
    expect(await runAway(world, "true")).toMatchObject({
      ...{ status: "failed", failure: "setup", files_changed: null, head_commit: "" },
      error: expect.stringContaining("denied access"),
    });
    world.forge.refuse = null;
    expect(await runAway(world, "echo 1 > a")).toMatchObject({ status: "completed", files_changed: 1 });
  });

  it("moves between the service's machine and runners without losing changes", async () => {
    await using world = await openTreeApp();
    await using _runner = await startTreeRunner(world);
    const move = (runs_on: string[]) => world.app.call(`PUT /api/workers/${world.ada.id}`, { runs_on });
    const here = await world.run("echo 1 > here");
    await move(["x"]);
    const away = await runAway(world, "cat here; echo 2 > away");
    expect(away).toMatchObject({ result: "1", base_commit: here.head_commit, files_changed: 1 });
    await move([]);
    const back = await world.run("cat here away; echo 3 > back");
    expect(back).toMatchObject({ result: "1\n2", base_commit: away.head_commit, files_changed: 1 });
    // As if these could not be taken over.
    await Deno.writeTextFile(join(world.getWorktree(back), "open"), "open");
    await world.app.db.write([{ sql: "update tree set dirty = 1", args: [] }]);
    await move(["x"]);
    expect(await runAway(world, "true")).toMatchObject({
      failure: "setup",
      error: expect.stringContaining("changes that are not committed"),
    });
    await move([]);
    expect(await world.run("cat open")).toMatchObject({ result: "open", files_changed: 1 });
  });

  it("a runner that cannot take a repository gets none, with the reason", async () => {
    await using world = await openTreeApp({ worker: { runs_on: ["x"], engine: "echo" } });
    const runner = await createFakeRunner(world.app);
    await runner.claim({ wait_ms: 0 });
    const task = await createScriptTask(world.app, world.ada.id, { script: "hello", conversation: "one" });
    await waitUntil(
      "the task has a reason",
      async () => /has a repository/.test((await world.app.call(`GET /api/tasks/${task.id}`)).reason),
    );
    const { body } = await runner.claim({ repo: true });
    expect(body.run.repo).toEqual({
      branch: expect.stringMatching(/^svc\/ada\//),
      author: { name: "Ada", email: `${world.ada.id}@svc.invalid` },
    });
  });

  it("starts each run anew, with the recent messages instead of the agent's session", async () => {
    await using world = await openTreeApp({ worker: { runs_on: ["x"], engine: "claude" } });
    const runner = await createFakeRunner(world.app);
    const engines = [{ name: "claude", agent: true }];
    const { id } = await world.app.call("POST /api/local/sessions", { worker_id: world.ada.id });
    const say = async (content: string) => {
      await world.app.call(`POST /api/local/sessions/${id}/messages`, { content });
      return (await runner.claim({ repo: true, engines })).body.run;
    };
    const first = await say("Paint it blue");
    await runner.end(first.execution.execution_id, { text: "It is blue", sessionId: crypto.randomUUID() });
    const second = await say("And now?");
    expect(second.briefing.session).toBeNull();
    expect(second.briefing.retelling).toMatch(/Paint it blue[^]*It is blue/);
    expect(second.work_dir).not.toBe(first.work_dir);
    expect(await world.app.db.read("select * from session_context")).toEqual([]);
  });

  it("a worker with unpushed branches is deleted with its work directory only", async () => {
    await using world = await openTreeApp({ worker: { runs_on: ["x"] } });
    await using _runner = await startTreeRunner(world);
    await runAway(world, "echo 1 > a");
    expect((await world.app.send(`DELETE /api/workers/${world.ada.id}`)).status).toBe(409);
    await world.app.call(`DELETE /api/workers/${world.ada.id}?delete_work_dir=true`);
    await expect(Deno.stat(world.getMirror())).rejects.toThrow(Deno.errors.NotFound);
  });
});
