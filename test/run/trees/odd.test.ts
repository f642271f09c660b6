import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { git } from "../../harness/service/git_server.ts";
import { createScriptTask, openTreeApp } from "../../harness/service/tree_app.ts";
import { waitForValue, waitUntil } from "../../harness/wait.ts";

const listFiles = (mirror: string, commit: string) => git(mirror, "ls-tree", "-r", "--name-only", commit);

describe("what agents leave in a worktree (contract 26)", () => {
  it.each([
    ["a detached HEAD", "git checkout -q --detach; echo 1 > a; git add a; git commit -qm apart"],
    ["another branch", "git checkout -q -b fix; echo 1 > a; git add a; git commit -qm fix"],
    ["locks", "echo 1 > a; touch .git/index.lock .git/HEAD.lock .git/refs/heads/x.lock"],
    ["a deleted repository", "echo 1 > a; rm -rf .git"],
    ["a broken repository", "echo 1 > a; git add a; echo broken > .git/HEAD; echo broken > .git/index"],
    ["a file instead of a repository", "echo 1 > a; rm -rf .git; echo gitdir: /etc > .git"],
    ["settings with a program", "echo 1 > a; git config core.fsmonitor 'touch /tmp/svc-never; false'"],
  ])("commits the files after %s, and the next run works", async (_what, script) => {
    await using world = await openTreeApp();
    const run = await world.run(script);
    expect(await listFiles(world.getMirror(), run.head_commit)).toBe("README.md\na\nsrc/one.txt");
    const next = await world.run(
      "git rm -q a && git commit -qm 'remove a' && git status --short && git branch --show-current",
    );
    expect(next).toMatchObject({ status: "completed", result: run.branch, base_commit: run.head_commit });
    expect(await listFiles(world.getMirror(), next.head_commit)).toBe("README.md\nsrc/one.txt");
    await git(world.getMirror(), "merge-base", "--is-ancestor", run.head_commit, next.branch);
  });

  it("commits an open merge as it is, and keeps the commits of both sides", async () => {
    await using world = await openTreeApp();
    const run = await world.run(
      "git checkout -q -b other; echo theirs > README.md; git commit -qam theirs; git checkout -q -; " +
        "echo ours > README.md; git commit -qam ours; git merge other; true",
    );
    expect(await git(world.getMirror(), "show", `${run.head_commit}:README.md`)).toMatch(/<<<<<<<[^]*theirs/);
    expect(await world.run("git status --short")).toMatchObject({ status: "completed", result: "" });
  });

  it("keeps commits that a later run takes out of its branch", async () => {
    await using world = await openTreeApp();
    const first = await world.run("echo 1 > a");
    const second = await world.run("git reset -q --hard HEAD~1");
    expect(await listFiles(world.getMirror(), second.head_commit)).toBe("README.md\nsrc/one.txt");
    await git(world.getMirror(), "merge-base", "--is-ancestor", first.head_commit, second.head_commit);
    const amended = await world.run("echo 2 > b; git add b; git commit -q --amend -m other");
    expect(await git(world.getMirror(), "cat-file", "-t", second.head_commit)).toBe("commit");
    expect(await listFiles(world.getMirror(), amended.head_commit)).toContain("b");
  });

  it("leaves out ignored files, files over 10 MiB and repositories, and says so", async () => {
    await using world = await openTreeApp();
    const run = await world.run(
      "echo build > .gitignore; mkdir build; echo 1 > build/x; head -c 10485761 /dev/zero > big.bin; " +
        "head -c 10485760 /dev/zero > fits.bin; git init -q inner; echo 1 > inner/y; echo 1 > 'with space'",
    );
    expect(await listFiles(world.getMirror(), run.head_commit)).toBe(
      ".gitignore\nREADME.md\nfits.bin\nsrc/one.txt\nwith space",
    );
    const log = await world.readLog(run);
    expect(log).toContain("[not committed: big.bin, a repository or a file over 10 MiB]");
    expect(log).toContain("[not committed: inner, a repository or a file over 10 MiB]");
    expect((await Deno.stat(join(world.getWorktree(run), "big.bin"))).size).toBe(10_485_761);
  });

  it("takes over the changes of a failed and of a cancelled run", async () => {
    await using world = await openTreeApp();
    const failed = await world.run("echo 1 > a; exit 3");
    expect(failed).toMatchObject({ status: "failed", failure: "exit_code", files_changed: 1 });
    const task = await createScriptTask(world.app, world.ada.id, {
      script: "echo 2 > b; touch .started; sleep 60",
      conversation: "two",
    });
    const running = await waitForValue(async () =>
      (await world.app.call("GET /api/executions?status=running"))[0] ?? null
    );
    const started = join(world.getWorktree(running), ".started");
    await waitUntil("it has written", () => Deno.stat(started).then(() => true, () => false));
    await world.app.call(`POST /api/executions/${running.id}/cancel`, {});
    await world.app.settle(60_000);
    const { execution_id } = await world.app.call(`GET /api/tasks/${task.id}`);
    expect(await world.app.call(`GET /api/executions/${execution_id}`)).toMatchObject({
      ...{ status: "failed", failure: "cancelled", files_changed: 2 },
    });
  });
});

describe("what a repository can be (contract 26)", () => {
  it("fetches no submodule and no LFS file, and commits around them", async () => {
    await using world = await openTreeApp();
    const main = await git(world.forge.dir, "rev-parse", "main");
    const pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5\n";
    const copy = await Deno.makeTempDir();
    await git(copy, "clone", "-q", world.forge.dir, ".");
    await Deno.writeTextFile(join(copy, ".gitattributes"), "*.bin filter=lfs diff=lfs merge=lfs -text\n");
    await Deno.writeTextFile(
      join(copy, ".gitmodules"),
      '[submodule "sub"]\n\tpath = sub\n\turl = /nowhere\n',
    );
    await Deno.writeTextFile(join(copy, "file.bin"), pointer);
    await git(copy, "update-index", "--add", "--cacheinfo", `160000,${main},sub`);
    await git(copy, "add", ".gitattributes", ".gitmodules", "file.bin");
    await git(copy, "commit", "-qm", "odd");
    await git(copy, "push", "-q", "origin", "main");
    await Deno.remove(copy, { recursive: true });
    const run = await world.run("cat file.bin; ls sub; echo 1 > a");
    expect(run).toMatchObject({ status: "completed", result: pointer.trim(), files_changed: 1 });
    expect(await git(world.getMirror(), "ls-tree", run.head_commit, "sub")).toContain(
      `160000 commit ${main}`,
    );
  });

  it("says that the base was renamed, and uses a force-pushed base for new branches", async () => {
    await using world = await openTreeApp({ repo: { base: "develop" } });
    const missing = await world.run("true");
    expect(missing).toMatchObject({
      status: "failed",
      failure: "setup",
      error:
        "Cannot prepare the worktree: the repository has no branch develop. Set repo.base to another one.",
    });
    await world.forge.commit("develop", { "dev.txt": "1" }, "main");
    const first = await world.run("cat dev.txt; echo 1 > a");
    const forced = await world.forge.commit("develop", { "dev.txt": "2" }, "main");
    const second = await world.run("cat dev.txt", "two");
    expect([first.result, second.result, second.base_commit]).toEqual(["1", "2", forced]);
    expect((await world.run("cat dev.txt", "one")).result).toBe("1");
  });

  it("says that the repository is empty, with and without a base", async () => {
    await using world = await openTreeApp();
    await git(world.forge.dir, "update-ref", "-d", "refs/heads/main");
    const expected = "Cannot prepare the worktree: the repository is empty. Push a first commit to it.";
    expect((await world.run("true")).error).toBe(expected);
    await world.app.call(`PUT /api/workers/${world.ada.id}`, {
      repo: { url: world.forge.url, base: "main" },
    });
    expect((await world.run("true")).error).toBe(expected);
  });

  it("says what is lost when the mirror is gone, and makes an emptied one anew", async () => {
    await using world = await openTreeApp();
    const { app } = world;
    const run = await world.run("echo 1 > a");
    await Deno.remove(join(app.dataDir, "trees", world.ada.id), { recursive: true });
    const diff = await app.send(`GET /api/executions/${run.id}/diff`);
    expect([diff.status, diff.body.detail]).toEqual([
      409,
      `Cannot show the changes of execution ${run.id}: the service's copy of the repository is gone`,
    ]);
    const next = await world.run("ls");
    expect(next.result).not.toContain("a\n");
    expect(await world.readLog(next)).toContain(
      `the last one ${run.head_commit}, are lost: this run started from`,
    );
    const mirror = world.getMirror();
    for await (const { name } of Deno.readDir(mirror)) {
      await Deno.remove(join(mirror, name), { recursive: true });
    }
    expect(await world.run("true", "other")).toMatchObject({ status: "completed" });
  });

  it("says in plain words that the remote is away, denies access, or does not exist", async () => {
    await using world = await openTreeApp();
    world.forge.refuse = { status: 503 };
    expect((await world.run("true")).error).toMatch(
      /^Cannot prepare the worktree: the remote repository cannot be reached/,
    );
    world.forge.refuse = { status: 403 };
    expect((await world.run("true")).error).toMatch(/the remote repository denied access/);
    world.forge.refuse = { status: 404 };
    expect((await world.run("true")).error).toMatch(/no such repository/);
    world.forge.refuse = null;
    expect(await world.run("true")).toMatchObject({ status: "completed" });
    // A worktree that exists needs no network.
    world.forge.refuse = { status: 503 };
    expect(await world.run("true")).toMatchObject({ status: "completed" });
  });

  it("works with a path, with a branch per task, and in schedules", async () => {
    await using world = await openTreeApp();
    const local = await world.app.call("POST /api/workers", {
      name: "Eve",
      repo: { path: world.forge.dir, per: "task" },
    });
    const body = { message_id: "m", worker_id: local.id, instruction: "echo 1 > a", type: "immediate" };
    const tasks = [
      await world.app.call("POST /api/tasks", body),
      await world.app.call("POST /api/tasks", body),
    ];
    await world.app.settle(60_000);
    const trees = await world.app.call(`GET /api/workers/${local.id}/trees`);
    expect(trees.map(({ task_id }: { task_id: string }) => task_id).sort()).toEqual(
      tasks.map(({ id }) => id).sort(),
    );
    // All runs of a schedule work in one worktree.
    const plan = { ...body, instruction: "echo run >> a", type: "scheduled", cron: "0 0 1 1 *" };
    const schedule = await world.app.call("POST /api/tasks", plan);
    for (const lines of [1, 2]) {
      await world.app.call(`POST /api/tasks/${schedule.id}/run`, {});
      await world.app.settle(60_000);
      const [run] = await world.app.call(`GET /api/executions?worker_id=${local.id}`);
      const a = join(world.app.dataDir, "trees", local.id, "work", run.tree_id.slice(-8), "a");
      expect((await Deno.readTextFile(a)).split("\n").length - 1).toBe(lines);
    }
  });

  it("refuses at the write what no run could use", async () => {
    await using world = await openTreeApp();
    const refuse = async (fields: Record<string, unknown>) => {
      const { status, body } = await world.app.send("POST /api/workers", { name: "X", ...fields });
      return [status, body.detail];
    };
    const url = world.forge.url;
    for (
      const [fields, words] of [
        [{ repo: { url: "http://forge.example.org/x.git" } }, /https or ssh/],
        [{ repo: { url: "https://ada:pw@forge.example.org/x.git" } }, /no user and no password/],
        [{ repo: { url: "ext::sh -c true" } }, /must be/],
        [{ repo: { url, path: "/x" } }, /exactly one of url and path/],
        [{ repo: {} }, /exactly one of url and path/],
        [{ repo: { url, base: "-x" } }, /name of a branch/],
        [{ repo: { path: "/x", credentials: "secret:forge" } }, /https only/],
        [{ repo: { url, credentials: "plain" } }, /secret:<name>/],
        [{ repo: { url, credentials: "secret:none" } }, /no secret is called none/],
        [{ repo: { url }, work_dir: "/tmp/x" }, /work_dir: cannot be combined with repo/],
        [{ repo: { path: world.app.dataDir } }, /data directory/],
      ] as const
    ) {
      expect(await refuse(fields)).toEqual([400, expect.stringMatching(words)]);
    }
    const moved = await world.app.send(`PUT /api/workers/${world.ada.id}`, { repo: null });
    expect([moved.status, moved.body.detail]).toEqual([400, expect.stringContaining("another repository")]);
    const same = await world.app.call(`PUT /api/workers/${world.ada.id}`, {
      repo: { ...world.ada.repo, push: "ask" },
    });
    expect(same.repo.push).toBe("ask");
  });
});
