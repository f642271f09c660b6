import { describe, expect, it } from "vitest";
import { closeDescriptorsOnExec } from "../../src/engine/process/inherited_descriptors.ts";
import { detectIsolation, findMarked, type Isolation } from "../../src/engine/process/isolation.ts";
import { findProgram, type ProcessSpec, runProcess, SpawnError } from "../../src/engine/process/process.ts";
import { FAKE_AGENT } from "../harness/fakes/agents.ts";

// As `svc serve` does at its start.
closeDescriptorsOnExec();
const best = await detectIsolation();
const LEVELS: Isolation[] = best === "namespace" ? ["namespace", "group"] : ["group"];

interface Ran {
  reason: string;
  code: number;
  stdout: string;
  stderr: string;
  ms: number;
  runId: string;
}

async function run(isolation: Isolation, args: string[], more: Partial<ProcessSpec> = {}): Promise<Ran> {
  const runId = crypto.randomUUID();
  const said = { stdout: "", stderr: "" };
  const decoder = new TextDecoder();
  const started = performance.now();
  const { reason, code } = await runProcess({
    runId,
    command: FAKE_AGENT,
    args,
    cwd: "/tmp",
    env: { PATH: "/usr/bin:/bin", SVC_RUN_ID: runId },
    stdin: "",
    isolation,
    box: null,
    umask: 0o022,
    timeoutMs: 20_000,
    idleTimeoutMs: 20_000,
    stopGraceMs: 300,
    signal: new AbortController().signal,
    waitedMs: () => 0,
    onStart: () => {},
    onOutput: (stream, chunk) => said[stream] += decoder.decode(chunk),
    ...more,
  });
  return { reason, code, ...said, ms: performance.now() - started, runId };
}

/** Resolves when no process has the mark any more (reliability I8). */
async function expectGone(runId: string): Promise<void> {
  expect(await findMarked(new Set([runId]))).toEqual([]);
}

describe.each(LEVELS)("runProcess under %s", (level) => {
  it("passes stdin, stdout, stderr and the exit code", async () => {
    expect(await run(level, ["stdin"])).toMatchObject({ reason: "exited", code: 0 });
    expect(await run(level, [], { stdin: "say 'quotes' \"and\" $dollars\n" })).toMatchObject({
      stdout: "'quotes' \"and\" $dollars\n",
    });
    expect(await run(level, ["both"])).toMatchObject({ stdout: "out\n", stderr: "err\n" });
    expect(await run(level, ["exit", "3"])).toMatchObject({ code: 3, stderr: "about to exit 3\n" });
    expect(await run(level, ["say", "- -x\n'"])).toMatchObject({ stdout: "- -x\n'\n" });
  });

  it("continues to read when the listener throws, so that the program does not hang", async () => {
    let pieces = 0;
    const onOutput = () => {
      pieces++;
      throw new Error("no sense");
    };
    expect(await run(level, ["flood", "3000000"], { onOutput })).toMatchObject({ reason: "exited", code: 0 });
    expect(pieces).toBeGreaterThan(1);
  });

  it("ends a program that ignores INT and TERM, with its children [CHD-1]", async () => {
    const abort = new AbortController();
    const ran = await run(level, ["ignore-term"], {
      signal: abort.signal,
      onOutput: (_stream, chunk) => {
        if (new TextDecoder().decode(chunk).includes("ready")) abort.abort();
      },
    });
    expect(ran.reason).toBe("aborted");
    // The signals are INT, TERM after 2 s, and KILL after the grace of this test.
    expect(ran.ms).toBeLessThan(20_000);
    await expectGone(ran.runId);
  });

  it("ends a cooperative program at the first signal", async () => {
    const abort = new AbortController();
    setTimeout(() => abort.abort(), 200);
    const ran = await run(level, ["sleep", "60"], { signal: abort.signal });
    expect(ran.reason).toBe("aborted");
    expect(ran.ms).toBeLessThan(15_000);
    await expectGone(ran.runId);
  });

  it("ends a process that escaped into a separate session [CHD-2]", async () => {
    const ran = await run(level, ["setsid-escape"]);
    expect(ran).toMatchObject({ reason: "exited", code: 0, stdout: "escaped\n" });
    await expectGone(ran.runId);
    const storm = await run(level, ["fork-storm", "64"]);
    expect(storm.stdout).toBe("storm\n");
    await expectGone(storm.runId);
  });

  it("does not wait for pipes that another process keeps open [CHD-5]", async () => {
    const ran = await run(level, ["hold-stdout"]);
    expect(ran).toMatchObject({ code: 0, stdout: "held\n" });
    expect(ran.ms).toBeLessThan(20_000);
    await expectGone(ran.runId);
  });

  it("ends a run over its time, and a silent one [CHD-9]", async () => {
    const late = await run(level, ["sleep", "60"], { timeoutMs: 300 });
    expect(late.reason).toBe("timeout");
    expect(late.ms).toBeLessThan(20_000);
    const silent = await run(level, ["sleep", "60"], { idleTimeoutMs: 300 });
    expect(silent.reason).toBe("idle_timeout");
    await expectGone(late.runId);
    await expectGone(silent.runId);
  });

  it("is no time-out when the service itself was stopped, by a signal or with its machine [CHD-9]", async () => {
    for (const limit of [{ timeoutMs: 700 }, { idleTimeoutMs: 700 }]) {
      const running = run(level, ["sleep", "0.3"], limit);
      await new Promise((resolve) => setTimeout(resolve, 100));
      // Blocks the event loop, like SIGSTOP.
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2_500);
      expect(await running).toMatchObject({ reason: "exited", stdout: "slept 0.3\n" });
    }
  });

  it("passes exactly the listed environment, the umask, and only three descriptors [CHD-10, CHD-11]", async () => {
    const env = await run(level, ["env-dump"]);
    const names = env.stdout.trim().split("\n").map((line) => line.split("=")[0]).filter((name) =>
      !/^(PWD|OLDPWD|SHLVL|_)$/.test(name ?? "")
    );
    expect(names.sort()).toEqual(["PATH", "SVC_RUN_ID"]);
    const file = await Deno.open(FAKE_AGENT);
    const descriptors = await run(level, ["fd-dump"]);
    file.close();
    const open = descriptors.stdout.trim().split("\n").slice(1).map((line) =>
      line.split(/\s+/).slice(8).join(" ")
    );
    expect(open.filter((line) => !/^[0-4] -> (pipe:|\/proc\/)|\/fake_agent\.sh$/.test(line))).toEqual([]);
    expect((await run(level, ["umask"], { umask: 0o027 })).stdout.trim()).toMatch(/^0?027$/);
  });

  it.runIf(Deno.build.os === "linux")(
    "is killed first when memory runs out, without harm to other processes [CHD-13]",
    async () => {
      expect((await run(level, ["oom-score"])).stdout).toBe("500\n");
      expect(await Deno.readTextFile("/proc/self/oom_score_adj")).not.toBe("500\n");
      expect((await run(level, ["mem-hog", "200000000"])).stdout).toBe("200000000\n");
    },
  );

  it.runIf(Deno.build.os === "linux")(
    "yields the processor to the service, as a process and as a session [CHD-13]",
    async () => {
      const own = Number(new TextDecoder().decode((await new Deno.Command("nice").output()).stdout));
      const [process, session = ""] = (await run(level, ["nice"])).stdout.trim().split("\n");
      expect(Number(process)).toBe(Math.min(19, own + 10));
      // Without session weights the file does not exist. Without rights the whole machine may change ten per second.
      if (session !== "" && mayAdministrate()) expect(session).toBe("10");
    },
  );

  it("has no terminal, and its stdin ends [CHD-12]", async () => {
    expect((await run(level, ["stdin"])).stdout).toBe("end of input\n");
  });

  it("reads a flood without keeping it in memory [CHD-6]", async () => {
    let bytes = 0;
    const before = Deno.memoryUsage().rss;
    const ran = await run(level, ["flood", "100000000"], {
      onOutput: (_stream, chunk) => bytes += chunk.length,
    });
    expect(ran.code).toBe(0);
    expect(bytes).toBe(100_000_000);
    expect(Deno.memoryUsage().rss - before).toBeLessThan(120_000_000);
  });
});

describe("findProgram and launch errors [CHD-8]", () => {
  it("reports the problem of a program [CHD-8]", async () => {
    const folder = await Deno.makeTempDir();
    await Deno.writeTextFile(`${folder}/plain`, "x", { mode: 0o644 });
    await Deno.mkdir(`${folder}/dir`);
    const cases: [string, RegExp][] = [
      ["no-such-program-anywhere", /was not found on PATH/],
      [`${folder}/none`, /does not exist/],
      [`${folder}/plain`, /not executable/],
      [`${folder}/dir`, /not a file/],
      [`${folder}/plain/x`, /cannot be read|does not exist/],
    ];
    for (const [command, words] of cases) {
      expect(() => findProgram(command, "/usr/bin:/bin"), command).toThrow(words);
    }
    expect(findProgram("sh", "/nowhere:/bin:/usr/bin")).toMatch(/\/sh$/);
    await Deno.remove(folder, { recursive: true });
  });

  it("runProcess() throws SpawnError for a missing directory", async () => {
    await expect(run("group", ["ok"], { cwd: "/no/such/directory" })).rejects.toThrow(SpawnError);
  });
});

/** Whether this process has CAP_SYS_ADMIN. */
function mayAdministrate(): boolean {
  const [, set = "0"] = /^CapEff:\s+(\w+)/m.exec(Deno.readTextFileSync("/proc/self/status")) ?? [];
  return (BigInt(`0x${set}`) >> 21n & 1n) === 1n;
}
