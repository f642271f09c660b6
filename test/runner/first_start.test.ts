import { join } from "node:path";
import { expect, it } from "vitest";
import { PROGRAM } from "../harness/service/alone.ts";
import { openApp } from "../harness/service/app.ts";
import { createTempDir, SVC } from "../harness/service/process.ts";
import {
  createRemoteWorker,
  createTask,
  RunnerProcess,
  waitUntilCompleted,
} from "../harness/service/runner.ts";
import { waitUntil } from "../harness/wait.ts";

// Show 6 of runners. SVC_PROGRAM selects a compiled svc.
const [COMMAND = "", ...REST] = PROGRAM === undefined ? SVC : [PROGRAM];

it("a fresh machine becomes a runner with the program, one command and a token, without a configuration (contract 18)", async () => {
  await using app = await openApp();
  await using folder = await createTempDir();
  const { token } = await app.call("POST /api/runners", { name: "fresh", labels: ["x"] });
  const tokenFile = join(folder.path, "fresh.token");
  await Deno.writeTextFile(tokenFile, `${token}\n`, { mode: 0o600 });
  const machine = join(folder.path, "machine");
  await Deno.mkdir(machine);
  const began = performance.now();
  const child = new Deno.Command(COMMAND, {
    args: [...REST, "runner", "--url", app.url, "--token-file", tokenFile],
    cwd: machine,
    clearEnv: true,
    env: { PATH: Deno.env.get("PATH") ?? "", HOME: Deno.env.get("HOME") ?? "/" },
    stdin: "null",
    stdout: "null",
    stderr: "piped",
  }).spawn();
  await using runner = new RunnerProcess(child, machine);
  const listed = async () => (await app.call("GET /api/runners")).map((one: { state: string }) => one.state);
  await waitUntil("it is in the list", async () => (await listed())[0] === "online");
  // The promise is one second. On a busy machine the test can only assert the event.
  console.info(`seen after ${Math.round(performance.now() - began)} ms`);
  const task = await createTask(app, await createRemoteWorker(app, "echo"), "hello");
  await waitUntilCompleted(app, task);
  expect([...Deno.readDirSync(machine)].map(({ name }) => name)).toEqual(["runner"]);
  expect([await runner.end(), await listed()]).toEqual([0, ["online"]]);
  expect(runner.stderr).toContain("Connected to svc");
});

it("a runner that cannot start reports why, and how to fix it (contract 18.2)", async () => {
  await using app = await openApp();
  await using folder = await createTempDir();
  const { token } = await app.call("POST /api/runners", { name: "gone", labels: ["x"] });
  await app.call("DELETE /api/runners/gone");
  const files: Record<string, string> = { removed: token, empty: "\n", person: await app.token() };
  for (const [name, text] of Object.entries(files)) {
    await Deno.writeTextFile(join(folder.path, name), text, { mode: 0o600 });
  }
  const run = async (...args: string[]) => {
    const command = new Deno.Command(COMMAND, { args: [...REST, "runner", ...args], cwd: folder.path });
    const { code, stderr } = await command.output();
    return `${code} ${new TextDecoder().decode(stderr)}`;
  };
  await Deno.chmod(join(folder.path, "person"), 0o644);
  const at = ["--url", app.url];
  const [none, missing, empty, clear, removed, person] = await Promise.all([
    run(...at),
    run(...at, "--token-file", "nothing"),
    run(...at, "--token-file", "empty"),
    run("--url", "http://192.0.2.1", "--token-file", "removed"),
    run(...at, "--token-file", "removed", "-c", await configIn(folder.path, "one")),
    run(...at, "--token-file", "person", "-c", await configIn(folder.path, "two")),
  ]);
  expect(none).toMatch(
    /^2 [\s\S]*--token-file or SVC_RUNNER_TOKEN_FILE is missing\. Usage: svc runner --url/,
  );
  expect(missing).toMatch(/^2 [\s\S]*nothing/);
  expect(empty).toMatch(/^2 [\s\S]*--token-file: the file is empty/);
  expect(clear).toMatch(/^2 [\s\S]*--url: must start with https:/);
  expect(removed).toMatch(/^4 [\s\S]*runner was removed|^4 [\s\S]*revoked/);
  expect(person).toMatch(/^4 [\s\S]*Other users of this machine can read the token[\s\S]*runners/);
  expect(removed).not.toContain("Other users of this machine");
});

/** Writes a configuration for a separate machine. */
async function configIn(folder: string, name: string): Promise<string> {
  const path = join(folder, `${name}.yaml`);
  await Deno.writeTextFile(path, `work_root: ${join(folder, name)}\n`);
  return path;
}
