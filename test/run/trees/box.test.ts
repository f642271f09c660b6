import { describe, expect, it } from "vitest";
import { BOX_SETTINGS } from "../../harness/box.ts";
import { git } from "../../harness/service/git_server.ts";
import { openTreeApp } from "../../harness/service/tree_app.ts";

const hasBox = await Deno.stat("/usr/bin/bwrap").then(() => true, () => false);

describe.skipIf(!hasBox)("a workspace in a box (needs bubblewrap) (contract 26)", () => {
  it("commits what a run left, and shows it neither the mirror's refs nor other worktrees", async () => {
    await using world = await openTreeApp({
      config: { isolation: BOX_SETTINGS },
      worker: { isolation: { box: { network: "host" } } },
    });
    const other = await world.run("echo secret > other.txt", "other");
    expect(other).toMatchObject({ status: "completed", error: "", files_changed: 1 });
    const top = world.getMirror().replace("/mirror.git", "");
    const run = await world.run(
      `id -un; ls ${top} ${top}/work ${top}/mirror.git; cat ${top}/mirror.git/config; ` +
        "echo 1 > a; git add a; git commit -qm mine; echo 2 > b; touch .git/index.lock",
    );
    expect(run).toMatchObject({ status: "completed", files_changed: 2 });
    expect(run.result).not.toContain("refs");
    expect(run.result).not.toContain(other.tree_id.slice(-8));
    expect(run.result).not.toContain("bare");
    const log = await git(
      world.getMirror(),
      "log",
      "--format=%an|%cn|%s",
      `${run.base_commit}..${run.head_commit}`,
    );
    expect(log.split("\n")).toEqual([expect.stringMatching(/^Ada\|svc\|/), "Ada|Ada|mine"]);
    const next = await world.run("git status --short; git log --format=%s -1; echo 3 >> a");
    expect(next).toMatchObject({ status: "completed", base_commit: run.head_commit, files_changed: 1 });
  });

  it("cannot change the objects of the mirror", async () => {
    await using world = await openTreeApp({
      config: { isolation: BOX_SETTINGS },
      worker: { isolation: { box: { network: "host" } } },
    });
    const objects = `${world.getMirror()}/objects`;
    const run = await world.run(
      `ls ${objects} | head -3; touch ${objects}/x 2>&1; rm -rf ${objects}/pack 2>&1; true`,
    );
    expect(run.result).toMatch(/Read-only file system/);
    expect(await world.run("echo 1 > a")).toMatchObject({ status: "completed", files_changed: 1 });
  });
});
