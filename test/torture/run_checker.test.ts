import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { buildDataPaths, getLogPath } from "../../src/base/paths.ts";
import { buildFakeEngines } from "../harness/fakes/agents.ts";
import { openApp } from "../harness/service/app.ts";
import { createTempDir } from "../harness/service/process.ts";
import { checkRuns, checkWorkRoot } from "./run_checker.ts";
import { withChangedCopy } from "./checker.ts";

const OTHER = "01a1fd23-4a4c-746f-99ac-8860e2641168";

/** Creates a data directory after a run that marked; returns its execution. */
async function createMarkedRun(dataDir: string, ledger: string): Promise<string> {
  const engines = buildFakeEngines({ ledger, env: { FAKE_LANES: "1" } });
  await using app = await openApp({ dataDir, config: { engines } });
  const worker = await app.call("POST /api/workers", { name: "Ada" });
  const { id } = await app.call("POST /api/local/sessions", { worker_id: worker.id });
  await app.call(`POST /api/local/sessions/${id}/messages`, { content: "mark 0.01 # 1" });
  await app.settle();
  const [execution] = await app.call(`GET /api/executions?worker_id=${worker.id}`);
  expect(execution).toMatchObject({ status: "completed", result: `mark ${execution.id} 1` });
  return execution.id;
}

const LEASE =
  "insert into remote_run (execution_id, runner_id, request_id, epoch, work_dir, lease_until) values";

const ROWS: [rule: RegExp, sql: (id: string) => string][] = [
  [/DSP-2: the result of .* is of another run/, () => `update execution set result = 'mark ${OTHER} 1'`],
  [/DSP-2: the result of .*, attempt 2, is of another run/, () => "update execution set attempt = 2"],
  [
    /DSP-2: the reply of .* is of another run/,
    () => `update outbound_message set content = 'mark ${OTHER} 1'`,
  ],
  [/I6: a lease has not ended/, (id) => `${LEASE} ('${id}', 'r', 'q', 1, '/', 1)`],
  [
    /DSP-2: an outcome is stored that its runner did not report/,
    (id) => `${LEASE} ('${id}', 'r', 'q', 1, '/', null)`,
  ],
  [
    /DSP-2: the execution .* is completed, and its program started 0/,
    () => `update execution set id = '${OTHER}'`,
  ],
];

describe("the checker of runs in a torture with runners [DSP-1, DSP-2]", () => {
  it("finds nothing where programs and rows agree, and each kind of violation otherwise", async () => {
    await using folder = await createTempDir();
    const dataDir = join(folder.path, "data");
    const ledger = join(folder.path, "ledger");
    const id = await createMarkedRun(dataDir, ledger);
    expect(await checkRuns(dataDir, ledger)).toEqual([]);
    for (const [rule, sql] of ROWS) {
      await withChangedCopy(
        dataDir,
        [sql(id)],
        async (copy) => expect(await checkRuns(copy, ledger)).toContainEqual(expect.stringMatching(rule)),
      );
    }
    const written = await Deno.readTextFile(ledger);
    expect(written.split("\n").map((line) => line.split(" ")[0])).toEqual(["start", "end", ""]);
    await Deno.writeTextFile(ledger, `start task 1 1 1 ${id}\n`, { append: true });
    expect(await checkRuns(dataDir, ledger)).toEqual([
      `DSP-1: the execution ${id} was started 2 times`,
      `DSP-2: the execution ${id} is completed, and its program started 2 and ended 1 times`,
    ]);
    await Deno.writeTextFile(ledger, written.replace(/end .*\n/, ""));
    expect(await checkRuns(dataDir, ledger)).toEqual([
      `DSP-2: the execution ${id} is completed, and its program started 1 and ended 0 times`,
    ]);
    await Deno.writeTextFile(ledger, written);
    const log = getLogPath(buildDataPaths(dataDir), id);
    const said = await Deno.readTextFile(log);
    await Deno.writeTextFile(log, said.replace(/mark .*/, ""));
    expect(await checkRuns(dataDir, ledger)).toEqual([`DSP-2: the log of ${id} has 0 marks`]);
    await Deno.writeTextFile(log, said);
    await Deno.writeTextFile(log, `mark ${OTHER} 1\n`, { append: true });
    expect(await checkRuns(dataDir, ledger)).toEqual([
      `DSP-2: the log of ${id} has 2 marks`,
      `DSP-2: the log of ${id} has the mark of another run`,
    ]);
  });

  it("finds the files of a runner in its work_root", async () => {
    await using folder = await createTempDir();
    const paths = buildDataPaths(folder.path);
    await Deno.mkdir(join(folder.path, "workers", "w"), { recursive: true });
    await Deno.writeTextFile(join(folder.path, "workers", "w", "kept"), "");
    expect(await checkWorkRoot(folder.path)).toEqual([]);
    await Deno.mkdir(dirname(getLogPath(paths, OTHER)), { recursive: true });
    expect(await checkWorkRoot(folder.path)).toEqual([]);
    await Deno.writeTextFile(getLogPath(paths, OTHER), "said");
    expect(await checkWorkRoot(folder.path)).toEqual([
      expect.stringMatching(/I8: a runner has left .*\.log/),
    ]);
  });

  it("a program notes a second one in its work directory", async () => {
    await using folder = await createTempDir();
    const ledger = join(folder.path, "ledger");
    const agent = new URL("../harness/fakes/fake_agent.sh", import.meta.url).pathname;
    const start = (task: string) =>
      new Deno.Command(agent, {
        args: ["sleep", "1"],
        cwd: folder.path,
        env: { FAKE_LEDGER: ledger, FAKE_LANES: "1", SVC_TASK_ID: task },
        stdin: "null",
        stdout: "null",
      }).output();
    await Promise.all([start("one"), start("other")]);
    const words = (await Deno.readTextFile(ledger)).split("\n").map((line) => line.split(" ")[0]);
    expect(words.filter((word) => word === "OVERLAP-OF-LANE")).toHaveLength(1);
    expect(words).not.toContain("OVERLAP");
  });
});
