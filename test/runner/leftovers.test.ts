import { dirname, join } from "node:path";
import { expect, it } from "vitest";
import { createTempDir } from "../harness/service/process.ts";
import { buildDataPaths, getLogPath } from "../../src/base/paths.ts";
import { OrphanRuns, resolveFiles } from "../../src/runner/orphan_runs.ts";

it("leftovers of a runner are ended by the next one in its directory, and nothing else [RUN-1]", async () => {
  await using folder = await createTempDir();
  const root = folder.path;
  const start = (runId: string) =>
    new Deno.Command("sleep", { args: ["300"], env: { SVC_RUN_ID: runId }, stdin: "null" }).spawn();
  const [left, own] = [crypto.randomUUID(), crypto.randomUUID()];
  const [leftover, stranger] = [start(left), start(own)];
  try {
    const paths = buildDataPaths(root);
    const before = new OrphanRuns(paths);
    before.record("one", left);
    before.record("two", own);
    before.remove("two");
    await new OrphanRuns(paths).endAll();
    expect((await leftover.status).signal).toBe("SIGKILL");
    expect([...Deno.readDirSync(`${root}/open`)]).toEqual([]);
    expect(await Deno.readTextFile(`/proc/${stranger.pid}/comm`)).toContain("sleep");
  } finally {
    stranger.kill("SIGKILL");
    await stranger.status;
  }
});

it("without process marks, leftover process groups are ended, and no other process [RUN-1]", async () => {
  await using folder = await createTempDir();
  const root = folder.path;
  const paths = buildDataPaths(root);
  const start = () =>
    new Deno.Command("sh", { args: ["-c", "sleep 300 & wait"], detached: true, stdin: "null" }).spawn();
  const [leftover, reused] = [start(), start()];
  try {
    const before = new OrphanRuns(paths, false);
    before.record("one", "run");
    before.recordProcess("one", leftover.pid);
    // As if the process number had been reused.
    const line = `${reused.pid} Thu Jan  1 00:00:00 1970\n`;
    await Deno.writeTextFile(join(root, "open", "one"), line, { append: true });
    await Deno.mkdir(resolveFiles(paths, "one"), { recursive: true });
    await Deno.mkdir(dirname(getLogPath(paths, "one")), { recursive: true });
    await Deno.writeTextFile(getLogPath(paths, "one"), "said");
    await new OrphanRuns(paths, false).endAll();
    expect((await leftover.status).signal).toBe("SIGKILL");
    expect(await Deno.readTextFile(`/proc/${reused.pid}/comm`)).toContain("sh");
    for (const path of [getLogPath(paths, "one"), resolveFiles(paths, "one"), join(root, "open", "one")]) {
      await expect(Deno.lstat(path)).rejects.toThrow(Deno.errors.NotFound);
    }
  } finally {
    Deno.kill(-reused.pid, "SIGKILL");
    await reused.status;
  }
});
