import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { ctl } from "../../harness/terminal.ts";
import { git } from "../../harness/service/git_server.ts";
import { openTreeApp } from "../../harness/service/tree_app.ts";
import { createTempDir } from "../../harness/service/process.ts";
import { waitForValue, waitUntil } from "../../harness/wait.ts";

const KEY = "ada:s3cret-token-of-the-forge";

describe("pushes of a workspace (contract 26)", () => {
  it("push: auto pushes the branch after each run, with credentials that no file has", async () => {
    await using world = await openTreeApp({ repo: { push: "auto" }, password: KEY });
    const first = await world.run("echo 1 > a");
    await world.app.until("tree.pushed");
    expect(await git(world.forge.dir, "rev-parse", first.branch)).toBe(first.head_commit);
    const second = await world.run("echo 2 > a");
    await world.app.until("tree.pushed", 2);
    expect(await git(world.forge.dir, "rev-parse", first.branch)).toBe(second.head_commit);
    const found = await new Deno.Command("grep", { args: ["-rla", "s3cret", world.app.dataDir] }).output();
    expect(new TextDecoder().decode(found.stdout)).toBe("");
  });

  it("push: never pushes on request only, and a repeated request pushes nothing more", async () => {
    await using world = await openTreeApp();
    const run = await world.run("echo 1 > a");
    expect(await git(world.forge.dir, "branch", "--list", "svc/*")).toBe("");
    const pushed = await world.app.call(`POST /api/executions/${run.id}/push`, {});
    expect(pushed).toMatchObject({ push: "", pushed_commit: run.head_commit, branch: run.branch });
    await world.app.call(`POST /api/executions/${run.id}/push`, {});
    expect(await git(world.forge.dir, "rev-parse", run.branch)).toBe(run.head_commit);
    const same = await world.run("true", "two");
    const refused = await world.app.send(`POST /api/executions/${same.id}/push`, {});
    expect([refused.status, refused.body.detail]).toEqual([409, expect.stringContaining("has no commits")]);
  });

  it("push: ask asks with the changes in its text, and pushes what a person allows", async () => {
    await using world = await openTreeApp({ repo: { push: "ask" } });
    const run = await world.run("echo 1 > a; echo 2 > b; echo 3 > \"$(printf 'c\\nbranch: main')\"");
    await world.app.until("question.opened");
    const [question] = await world.app.call("GET /api/questions?status=open");
    expect(question).toMatchObject({ tool: "git push", options: ["Allow", "Deny"], default: "Deny" });
    expect(question.text).toContain(
      `branch: ${run.branch}\n3 files changed, 3 insertions, 0 deletions\n+1 -0 a\n+1 -0 b\n+1 -0 c\\nbranch: main`,
    );
    expect(await git(world.forge.dir, "branch", "--list", "svc/*")).toBe("");
    await world.app.call(`POST /api/questions/${question.id}/answer`, { answer: "Allow" });
    await world.app.until("tree.pushed");
    expect(await git(world.forge.dir, "rev-parse", run.branch)).toBe(run.head_commit);
  });

  it("push: ask pushes nothing after Deny, and asks anew after more changes", async () => {
    await using world = await openTreeApp({ repo: { push: "ask" } });
    const first = await world.run("echo 1 > a");
    await world.app.until("question.opened");
    await world.run("echo 2 > b");
    await world.app.until("question.opened", 2);
    const open = await world.app.call("GET /api/questions?status=open");
    expect(open).toHaveLength(1);
    expect(open[0].text).toContain("2 files changed");
    await world.app.call(`POST /api/questions/${open[0].id}/answer`, { answer: "Deny" });
    const tree = await waitForValue(async () => {
      const found = await world.findTree(first);
      return found.push === "" ? found : null;
    });
    expect(tree.pushed_commit).toBe("");
    expect(await git(world.forge.dir, "branch", "--list", "svc/*")).toBe("");
  });

  it("blocks commits with a secret of the worker, also in a file that a later commit removes", async () => {
    await using world = await openTreeApp();
    await world.app.call("PUT /api/secrets/key", { value: "hush-hush-hush-hush", workers: [world.ada.id] });
    await world.app.call(`PUT /api/workers/${world.ada.id}`, { env: { DEPLOY: "secret:key" } });
    const run = await world.run(
      'echo "$DEPLOY" > key.txt; git add key.txt; git commit -qm oops; git rm -q key.txt; git commit -qm gone',
    );
    const refused = await world.app.send(`POST /api/executions/${run.id}/push`, {});
    expect([refused.status, refused.body.detail]).toEqual([
      409,
      expect.stringContaining("contains a secret"),
    ]);
    expect(await git(world.forge.dir, "branch", "--list", "svc/*")).toBe("");
    expect(await world.app.call("GET /api/inbox")).toContainEqual(
      expect.objectContaining({ kind: "push_failed", execution_id: run.id, title: run.branch }),
    );
    const shown = await world.run('echo "$DEPLOY" > key.txt', "two");
    expect(await world.app.call(`GET /api/executions/${shown.id}/diff`)).not.toContain("hush-hush");
  });

  it("names a refused password, an unreachable remote, and a branch with other commits", async () => {
    await using world = await openTreeApp({ password: KEY });
    const run = await world.run("echo 1 > a");
    const push = async () => {
      const { status, body } = await world.app.send(`POST /api/executions/${run.id}/push`, {});
      return [status, body.detail];
    };
    await world.app.call("PUT /api/secrets/forge", { value: "ada:wrong-password" });
    expect(await push()).toEqual([409, expect.stringContaining("denied access")]);
    await world.app.call("PUT /api/secrets/forge", { value: KEY });
    world.forge.refuse = { status: 503 };
    expect(await push()).toEqual([502, expect.stringContaining("cannot be reached")]);
    world.forge.refuse = null;
    const other = await world.forge.commit(run.branch, { "other.txt": "x" }, "main");
    expect(await push()).toEqual([
      409,
      expect.stringContaining("has other commits in the remote repository. Delete it there, or discard it"),
    ]);
    expect(await git(world.forge.dir, "rev-parse", run.branch)).toBe(other);
  });

  it("pushes later changes when a kill hid an earlier push from the service", async () => {
    await using world = await openTreeApp();
    const first = await world.run("echo 1 > a");
    await world.app.call(`POST /api/executions/${first.id}/push`, {});
    await world.app.db.write([{ sql: "update tree set pushed_commit = ''", args: [] }]);
    const second = await world.run("echo 2 > b");
    await world.app.call(`POST /api/executions/${second.id}/push`, {});
    expect(await git(world.forge.dir, "rev-parse", first.branch)).toBe(second.head_commit);
  });

  it("a push succeeds when an earlier push of the same commit creates the branch meanwhile", async () => {
    await using world = await openTreeApp();
    const run = await world.run("echo 1 > a");
    await using folder = await createTempDir();
    const started = join(folder.path, "started");
    // The hook of the push that a killed service has left.
    await Deno.writeTextFile(
      join(world.forge.dir, "hooks/pre-receive"),
      `#!/bin/sh\ntouch ${started}\nsleep 1\n`,
      {
        mode: 0o755,
      },
    );
    const args = ["push", "-q", world.forge.dir, `${run.head_commit}:refs/heads/${run.branch}`];
    const earlier = git(world.getMirror(), ...args);
    await waitUntil("the earlier push runs", () => Deno.stat(started).then(() => true, () => false));
    await world.app.call(`POST /api/executions/${run.id}/push`, {});
    await earlier.catch(() => {});
    expect(await git(world.forge.dir, "rev-parse", run.branch)).toBe(run.head_commit);
  });

  it("discards a branch with its worktree, and the next run starts from the base", async () => {
    await using world = await openTreeApp();
    const run = await world.run("echo 1 > a");
    const lost = await world.app.call(`POST /api/executions/${run.id}/discard`, {});
    expect(lost).toMatchObject({ branch: run.branch, head_commit: run.head_commit });
    await expect(Deno.stat(world.getWorktree(run))).rejects.toThrow(Deno.errors.NotFound);
    const next = await world.run("ls");
    expect(next.result).toBe("README.md\nsrc");
    expect(next.branch).not.toBe(run.branch);
    const again = await world.app.send(`POST /api/executions/${run.id}/discard`, {});
    expect([again.status, again.body.detail]).toEqual([409, expect.stringContaining("was discarded")]);
    expect(await world.app.call(`GET /api/executions/${run.id}/diff`)).toContain("+++ b/a");
  });

  it("does not discard the worktree of a gate that runs", async () => {
    await using world = await openTreeApp();
    const schedule = {
      ...{ message_id: "m", worker_id: world.ada.id, instruction: "echo 1 > a", type: "scheduled" },
      ...{ cron: "0 0 1 1 *", gate: { command: ["sh", "-c", "until [ -e go ]; do sleep 0.05; done"] } },
    };
    const { id } = await world.app.call("POST /api/tasks", schedule);
    await world.app.call(`POST /api/tasks/${id}/run`);
    const [tree] = await waitForValue(async () => {
      const trees = await world.app.call(`GET /api/workers/${world.ada.id}/trees`);
      return trees.length > 0 ? trees : null;
    });
    const go = async () => {
      const path = join(world.getWorktree({ tree_id: tree.id }), "go");
      await waitForValue(() => Deno.writeTextFile(path, "").then(() => true, () => null));
      await world.app.settle(60_000);
    };
    await go();
    const { execution_id } = await world.app.call(`GET /api/tasks/${id}`);
    await Deno.remove(join(world.getWorktree({ tree_id: tree.id }), "go"));
    await world.app.call(`POST /api/tasks/${id}/run`);
    await waitForValue(async () =>
      (await world.app.call(`GET /api/tasks/${id}`)).reason.includes("gate") || null
    );
    const refused = await world.app.send(`POST /api/executions/${execution_id}/discard`, {});
    expect([refused.status, refused.body.detail]).toEqual([409, expect.stringContaining("a run works on")]);
    await go();
    expect((await world.app.send(`POST /api/executions/${execution_id}/discard`, {})).status).toBe(200);
  });

  it("keeps a worker with unpushed commits, unless its directory goes, too", async () => {
    await using world = await openTreeApp();
    await world.run("echo 1 > a");
    const kept = await world.app.send(`DELETE /api/workers/${world.ada.id}`);
    expect([kept.status, kept.body.detail]).toEqual([409, expect.stringContaining("not pushed")]);
    const { code, err } = await ctl(world.app, ["worker", "delete", world.ada.id]);
    expect([code, err]).toEqual([5, expect.stringMatching(/, or use --delete-work-dir to delete them\.\n$/)]);
    await world.app.call(`DELETE /api/workers/${world.ada.id}?delete_work_dir=true`);
    await expect(Deno.stat(join(world.app.dataDir, "trees", world.ada.id))).rejects.toThrow();
  });

  it("svc ctl prints each changed file on one line, whatever its name", async () => {
    await using world = await openTreeApp();
    const run = await world.run("touch \"$(printf 'a\\tb\\nc\\\\d\\033[2J')\"");
    const { out } = await ctl(world.app, ["execution", "diff", "--stat", run.id]);
    expect(out.split("\n")).toEqual([
      "a\\tb\\nc\\\\d\ufffd[2J\t+0 -0",
      expect.stringContaining("1 file"),
      "",
    ]);
  });

  it("cuts a long diff and says it, and counts it whole", async () => {
    await using world = await openTreeApp();
    const run = await world.run("seq 1 400000 > numbers.txt; head -c 3000 /dev/urandom > noise.bin");
    const diff: string = await world.app.call(`GET /api/executions/${run.id}/diff`);
    expect(diff.length).toBeLessThan(2.1 * 1024 * 1024);
    expect(diff).toMatch(/\n\[diff cut: it is longer than 2 MiB\]\n$/);
    const stat = await world.app.call(`GET /api/executions/${run.id}/diff?stat=true`);
    expect(stat).toMatchObject({ files_changed: 2, insertions: 400_000, truncated: false });
    expect(stat.files).toContainEqual({ path: "noise.bin", insertions: null, deletions: null });
  });
});
