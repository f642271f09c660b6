import { describe, expect, it, vi } from "vitest";
import { findBoxFault } from "../../../src/engine/process/box_fault.ts";
import { BOX_SETTINGS } from "../../harness/box.ts";
import { openTreeApp } from "../../harness/service/tree_app.ts";
import { runAway, startTreeRunner } from "../../harness/service/tree_runner.ts";

vi.setConfig({ testTimeout: 120_000 });

const fault = await findBoxFault(BOX_SETTINGS);
const why = fault === null ? "" : ` (skipped: ${fault})`;

describe(`a worker with a repository in a box on a runner${why} (contract 33.10)`, () => {
  it.skipIf(fault !== null)("commits there, and cannot change the objects that it borrows", async () => {
    await using world = await openTreeApp({
      config: { isolation: BOX_SETTINGS },
      worker: { runs_on: ["x"], isolation: { box: { network: "host" } } },
    });
    await using runner = await startTreeRunner(world, "r1", { isolation: BOX_SETTINGS });
    const run = await runAway(
      world,
      `ls ${runner.root}/trees/*/mirror.git; touch ../../mirror.git/objects/x 2>&1; cat ${runner.root}/place; ` +
        "git log --oneline origin/main | wc -l; echo 1 > a; git add a; git commit -qm mine; echo 2 > b",
    );
    expect(run).toMatchObject({ status: "completed", error: "", files_changed: 2 });
    expect(run.result).toMatch(/Read-only file system/);
    expect(run.result).not.toMatch(/refs|HEAD|packed/);
    const next = await runAway(world, "cat a b; id -u; echo 3 >> a");
    expect(next).toMatchObject({ status: "completed", base_commit: run.head_commit, files_changed: 1 });
    expect(next.result).toMatch(/^1\n2\n[1-9]/);
  });
});
