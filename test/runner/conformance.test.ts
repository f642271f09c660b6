import { describe, expect, it } from "vitest";
import { createTempDir, SVC } from "../harness/service/process.ts";

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

  it.runIf(hasPython).each([
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
  ])(`fails a runner that %s${skipped}`, async (_fault, text, broken, name) => {
    await using folder = await createTempDir();
    const source = await Deno.readTextFile(PYTHON_RUNNER);
    expect(source.split(text).length, text).toBe(2);
    await Deno.writeTextFile(`${folder.path}/runner.py`, source.replace(text, broken));
    const result = await checkRunner(["python3", `${folder.path}/runner.py`], "--case", name);
    expect(result).toMatchObject({ code: 1, text: expect.stringContaining("0 passed, 1 failed") });
  });
});
