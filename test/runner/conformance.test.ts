import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { CASES } from "./conformance/cases.ts";
import { ONCE_CASES } from "./conformance/once_cases.ts";
import { waitUntil } from "../harness/wait.ts";
import { createTempDir, endProcess, SVC } from "../harness/service/process.ts";

const FOLDER = new URL("./conformance/", import.meta.url).pathname;
const PYTHON_RUNNER = `${FOLDER}python_runner.py`;

/** Runs the conformance program as a stranger does. Returns its exit code and output. */
async function checkRunner(command: string[], ...flags: string[]): Promise<{ code: number; text: string }> {
  const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", `${FOLDER}main.ts`, ...flags, "--", ...command],
    env: { SVC_PROGRAM: SVC.join("\n") },
    stdin: "null",
  }).output();
  return { code, text: new TextDecoder().decode(stdout) + new TextDecoder().decode(stderr) };
}

// Each case starts a process. All together take a minute on a loaded machine.
const TIMEOUT_MS = 300_000;

const hasPython = await new Deno.Command("python3", { args: ["--version"], stdout: "null", stderr: "null" })
  .output().then(({ success }) => success, () => false);
const skipped = hasPython ? "" : " (skipped: python3 is missing)";

describe("the conformance program for runners", () => {
  it("passes svc runner", async () => {
    const { code, text } = await checkRunner(["sh", `${FOLDER}svc_runner.sh`]);
    expect(text.split("\n").filter((line) => line.startsWith("FAIL")).join("\n")).toBe("");
    expect(text).toMatch(/\n\d\d passed, 0 failed\n/);
    expect(code).toBe(0);
  }, TIMEOUT_MS);

  it("passes svc runner --once", async () => {
    const { code, text } = await checkRunner(["sh", `${FOLDER}svc_runner.sh`, "--once"], "--once");
    expect(text.split("\n").filter((line) => line.startsWith("FAIL")).join("\n")).toBe("");
    expect(code).toBe(0);
  }, TIMEOUT_MS);

  it.runIf(hasPython)(`passes a runner in Python that was written from the document${skipped}`, async () => {
    const { code, text } = await checkRunner(["python3", PYTHON_RUNNER]);
    expect(text.split("\n").filter((line) => line.startsWith("FAIL")).join("\n")).toBe("");
    expect(code).toBe(0);
  }, TIMEOUT_MS);

  // Each fault breaks one rule, and one case finds it.
  it.runIf(hasPython).concurrent.each([
    [
      "sends epoch 0 in each claim",
      '"epoch": state["epoch"],',
      '"epoch": 0,',
      "the epoch of the last answer",
    ],
    [
      "masks nothing",
      "in self.secrets:\n            data =",
      "in []:\n            data =",
      "the secrets and",
    ],
    ["claims beyond max_runs", "if len(runs) >= 2:", "if False:", "at most max_runs"],
    [
      "repeats events with new numbers",
      '"no": 1,',
      '"no": time.time_ns() % 1000 + 2,',
      "completes with its log",
    ],
    [
      "sends the first piece of a secret before the second one is there",
      "hold = max(map(len, self.secrets), default=0)",
      "hold = 0",
      "wrote in two pieces",
    ],
    [
      "masks a result after it has cut it",
      "limit_result(self.mask(bytes(result)))",
      "self.mask(limit_result(bytes(result)).encode()).decode()",
      "at the cut",
    ],
    [
      "masks a log after it has cut it",
      "log = self.mask(bytes(self.raw))",
      "log = self.mask(bytes(self.raw[:limit]))",
      "at the cut",
    ],
    ["masks no secrets of MCP servers", ', *order["mcp"]["secrets"]]', "]", "wrote in two pieces"],
    [
      "sends the log only at the end",
      "is_last = self.done\n",
      "is_last = wait_until(lambda: self.done, 3600) is None\n",
      "while the program runs",
    ],
    [
      "gives a check the token and the secrets",
      "if name not in names and value not in values}",
      "}",
      "no token and no secrets",
    ],
    [
      "gives a check another variable with a secret",
      "if name not in names and value not in values}",
      "if name not in names}",
      "no token and no secrets",
    ],
    ["gives a program its own environment", "return {**base,", "return {**os.environ,", "and no more"],
    [
      "does not start the engine again after a failed check",
      'outcome = self.engine(env, "\\n\\n" + words)',
      "pass",
      "after a failed check",
    ],
    ["sends results over the limit", "RESULT, CUT = 200 *", "RESULT, CUT = 500 *", "at most 200 KiB"],
    [
      "cuts the bytes of a result and not its text",
      "    if len(text.encode()) <= RESULT:",
      "    if len(data) <= RESULT:",
      "at most 200 KiB",
    ],
  ])(`fails a runner that %s${skipped}`, async (_fault, text, broken, name) => {
    await using folder = await createTempDir();
    const source = await Deno.readTextFile(PYTHON_RUNNER);
    expect(source.split(text).length, text).toBe(2);
    await Deno.writeTextFile(`${folder.path}/runner.py`, source.replace(text, broken));
    const result = await checkRunner(["python3", `${folder.path}/runner.py`], "--case", name);
    expect(result).toMatchObject({ code: 1, text: expect.stringContaining("0 passed, 1 failed") });
    expect(result.text).toMatch(/^FAIL {2}.+\n {6}runner: /);
  }, TIMEOUT_MS);

  it("says of a runner that exits what it did, and what the page wants", async () => {
    const { code, text } = await checkRunner(
      ["sh", "-c", "echo broken >&2; exit 7"],
      "--case",
      "new request_id",
    );
    expect([code, text]).toEqual([
      1,
      `FAIL  a claim has a new request_id, and the epoch of the last answer
      runner: the runner exited with 7 before three claims
      stderr: broken
      page:   a new UUID for each claim, the same in its repetitions.
0 passed, 1 failed
`,
    ]);
  });

  it("ends its runner and removes its files when it is ended", async () => {
    await using folder = await createTempDir();
    const runner = ["sh", "-c", `echo $$ > ${folder.path}/pid; exec sleep 300`];
    const temp = join(folder.path, "temp");
    await Deno.mkdir(temp);
    const program = new Deno.Command(Deno.execPath(), {
      args: ["run", "-A", `${FOLDER}main.ts`, "--case", "new request_id", "--", ...runner],
      env: { TMPDIR: temp },
      ...{ stdin: "null", stdout: "null", stderr: "null" },
    }).spawn();
    const readPid = () => Deno.readTextFile(join(folder.path, "pid")).then(Number, () => 0);
    await waitUntil("the runner starts", async () => await readPid() > 0);
    expect((await endProcess(program, "SIGTERM")).code).toBe(143);
    const pid = await readPid();
    expect(() => Deno.kill(pid, "SIGKILL")).toThrow(Deno.errors.NotFound);
    expect(await Array.fromAsync(Deno.readDir(temp))).toEqual([]);
  });

  it("names a sentence of the page for each case", async () => {
    const page = await Deno.readTextFile(new URL("../../docs/reference/runner-protocol.md", import.meta.url));
    const missing = [...CASES, ...ONCE_CASES].filter(({ rule }) => !page.includes(rule));
    expect(missing.map(({ name, rule }) => `${name}: ${rule}`)).toEqual([]);
  });
});
