import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { git } from "../../harness/service/git_server.ts";
import { openTreeApp } from "../../harness/service/tree_app.ts";

describe("a worker with a repository (contract 26)", () => {
  it("commits what a run left, on a branch of its conversation", async () => {
    await using world = await openTreeApp();
    const first = await world.run("pwd; echo new > new.txt; rm src/one.txt; echo more >> README.md");
    expect(first).toMatchObject({
      status: "completed",
      branch: expect.stringMatching(/^svc\/ada\/[0-9a-f]{8}$/),
      files_changed: 3,
      insertions: 2,
      deletions: 1,
    });
    const mirror = world.getMirror();
    expect(
      await git(mirror, "log", "-1", "--format=%an %cn %s%n%(trailers:key=Svc-Run,valueonly)", first.branch),
    )
      .toMatch(new RegExp(`^Ada svc pwd; echo new .*\n${first.id}$`));
    expect(await git(mirror, "ls-tree", "-r", "--name-only", first.head_commit)).toBe("README.md\nnew.txt");
    const second = await world.run("cat new.txt; git log --oneline | wc -l; echo again > again.txt");
    expect(second).toMatchObject({ branch: first.branch, base_commit: first.head_commit, files_changed: 1 });
    expect(second.result).toBe("new\n2");
  });

  it("takes over the agent's own commits", async () => {
    await using world = await openTreeApp();
    const run = await world.run("echo 1 > a; git add a; git commit -qm mine; echo 2 > b");
    const log = await git(
      world.getMirror(),
      "log",
      "--format=%an|%cn|%s",
      `${run.base_commit}..${run.head_commit}`,
    );
    expect(log.split("\n")).toEqual([expect.stringMatching(/^Ada\|svc\|echo 1/), "Ada|Ada|mine"]);
  });

  it("runs two conversations side by side, each on another branch", async () => {
    await using world = await openTreeApp();
    const flags = await Deno.makeTempDir();
    const meet = (own: string, other: string) =>
      `touch ${flags}/${own}; while [ ! -e ${flags}/${other} ]; do sleep 0.05; done; echo ${own} > ${own}.txt`;
    const [one, two] = await Promise.all([
      world.run(meet("one", "two"), "one"),
      world.run(meet("two", "one"), "two"),
    ]);
    await Deno.remove(flags, { recursive: true });
    expect(one.branch).not.toBe(two.branch);
    for (const [run, name] of [[one, "one"], [two, "two"]]) {
      expect(await git(world.getMirror(), "diff", "--name-only", run.base_commit, run.head_commit)).toBe(
        `${name}.txt`,
      );
    }
  });

  it("keeps one run after another in one conversation", async () => {
    await using world = await openTreeApp();
    const script = "[ ! -e busy ] || exit 9; touch busy; sleep 0.2; rm busy; date +%N >> times";
    const runs = await Promise.all([1, 2, 3].map(() => world.run(script)));
    expect(runs.map(({ status }) => status)).toEqual(["completed", "completed", "completed"]);
    expect(new Set(runs.map(({ branch }) => branch)).size).toBe(1);
  });

  it("the check of the work sees the worktree", async () => {
    await using world = await openTreeApp();
    const verify = { command: ["sh", "-c", "test -e made.txt && echo checked > checked.txt"] };
    const run = await world.run("echo x > made.txt", "one", { verify });
    expect(run).toMatchObject({ verify: { status: "passed" }, files_changed: 2 });
    expect(await git(world.getMirror(), "ls-tree", "-r", "--name-only", run.head_commit)).toContain(
      "checked.txt",
    );
    expect(join(world.getWorktree(run), "made.txt")).toContain(world.app.dataDir);
  });
});
