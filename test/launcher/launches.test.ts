import { expect, it } from "vitest";
import { findTool } from "../../src/engine/process/isolation.ts";
import { runLauncherProgram } from "../../src/run/remote/launcher_program.ts";
import {
  createFakeRunner,
  createRemoteWorker,
  createTask,
  waitUntilCompleted,
  waitUntilLost,
} from "../harness/service/runner.ts";
import { createTempDir } from "../harness/service/process.ts";
import { type App, type AppOptions, openApp } from "../harness/service/app.ts";
import {
  type LaunchWorld,
  openLaunchWorld,
  SH as ENGINES,
  writeCommand,
  writeLauncher,
  writeOnceLauncher,
} from "../harness/service/launcher.ts";
import { waitUntil } from "../harness/wait.ts";
import { ROOT } from "../harness/house/tree.ts";

const SH = { engines: [{ name: "sh", agent: false }] };

/** A service whose launcher prints an id and starts nothing. */
function openLiar(change: object = {}, options: AppOptions = {}): Promise<LaunchWorld> {
  return openLaunchWorld(async (folder) => ({
    gpu: {
      command: [await writeCommand(folder, `echo "$SVC_RUN_ID" >>${folder}/calls; echo 12`)],
      cancel: [await writeCommand(folder, `echo "$SVC_LAUNCH_JOB $SVC_RUN_ID" >>${folder}/cancels`)],
      ...change,
    },
  }), options);
}

async function createLaunchedTask(world: LaunchWorld, instruction = "echo hello"): Promise<string> {
  return await createTask(world.app, await world.createWorker(), instruction);
}

async function countEvents(world: LaunchWorld, kind: string): Promise<number> {
  return (await world.app.db.read("select 1 from journal where kind = ?", [kind])).length;
}

it("a launcher starts one runner for one run, which ends with it [LCH-1]", async () => {
  await using world = await openLaunchWorld(async (folder) => ({
    gpu: { command: [await writeLauncher(folder)] },
  }));
  const { app } = world;
  const task = await createLaunchedTask(world);
  await waitUntilCompleted(app, task);
  const [execution] = await app.call("GET /api/executions");
  expect(execution).toMatchObject({ status: "completed", result: "hello", attempt: 1 });
  expect(await world.read("calls")).toEqual([execution.id]);
  const [job] = await world.read("jobs");
  await world.waitForLaunch("ended");
  expect((await app.call(`GET /api/executions/${execution.id}`)).launch).toEqual({
    launcher: "gpu",
    job,
    state: "ended",
  });
  expect(await app.call("GET /api/runners")).toEqual([]);
  expect(await app.call("GET /api/launchers")).toMatchObject([{
    name: "gpu",
    open: 0,
    running: 0,
    failures: 0,
  }]);
});

it(
  "a job that is svc runner --once does its run, leaves nothing behind, and ends with 0 [LCH-1]",
  async () => {
    await using world = await openLaunchWorld(async (folder) => ({
      gpu: { command: [await writeOnceLauncher(folder)] },
    }));
    const { app, folder } = world;
    const task = await createLaunchedTask(world, "pwd; echo hello >file");
    await waitUntilCompleted(app, task);
    const [execution] = await app.call("GET /api/executions");
    expect(execution.result).toContain(`/homes/${execution.id}`);
    await waitUntil("the job ends", async () => (await world.read("codes")).length > 0);
    expect([await world.read("codes"), await world.read("runner.log")]).toEqual([["0"], expect.any(Array)]);
    expect([...Deno.readDirSync(`${folder}/tmp`)]).toEqual([]);
  },
  120_000,
);

it("the command gets the address, the labels, the resources and the token as variables and as JSON [LCH-1]", async () => {
  await using world = await openLaunchWorld(async (folder) => ({
    gpu: {
      labels: ["x", "y"],
      command: [await writeCommand(folder, `env >${folder}/env; cat >${folder}/stdin; echo 1`)],
    },
  }));
  const worker = await world.createWorker({ resources: { cpus: 2, memory: "1G", gpus: 1, time: "90s" } });
  await createTask(world.app, worker, "echo hello");
  const { id } = await world.waitForLaunch("launched");
  const env = Object.fromEntries((await world.read("env")).map((line) => line.split(/=(.*)/)));
  const { token, ...stdin } = JSON.parse((await world.read("stdin")).join(""));
  const tokenFile = `${world.app.dataDir}/launches/${id}/token`;
  expect(env).toMatchObject(stdin);
  expect(stdin).toEqual({
    SVC_RUNNER_URL: world.app.url,
    SVC_RUN_LABELS: "x",
    SVC_RUN_ID: id,
    SVC_RUNNER_TOKEN_FILE: tokenFile,
    SVC_RUN_CPUS: "2",
    SVC_RUN_MEMORY: "1024",
    SVC_RUN_GPUS: "1",
    SVC_RUN_TIME: "90",
  });
  expect(await Deno.readTextFile(tokenFile)).toBe(token);
  expect((await Deno.stat(tokenFile)).mode ?? 0 & 0o777).toBe(0o100600);
  expect(Object.keys(env).filter((name) => /^SVC_/.test(name)).sort()).toEqual(Object.keys(stdin).sort());
});

it("a job that never comes is canceled at its deadline, and its task keeps its attempts [LCH-1]", async () => {
  await using world = await openLiar({ start_timeout: "1s" });
  const task = await createLaunchedTask(world);
  const launched = await world.waitForReason(task, /^waits for job 12 of the launcher gpu/);
  expect(launched).toMatchObject({
    status: "pending",
    held_by: { kind: "launch", id: "gpu" },
    launch: { launcher: "gpu", job: "12", state: "launched" },
  });
  const { id } = await world.waitForLaunch("launched");
  const late = await world.openRunner(id);
  const ended = await world.waitForReason(
    task,
    /gpu failed and tries again later: job 12 started no runner in time/,
  );
  expect(ended).toMatchObject({ status: "pending", attempt: 0, run_count: 0, launch: null });
  expect(ended.held_by.until).toBeGreaterThan(Date.now());
  await waitUntil("its job is canceled", async () => (await world.read("cancels")).length === 1);
  expect(await world.read("cancels")).toEqual([`12 ${id}`]);
  expect((await late.claim(SH)).status).toBe(401);
  expect(await world.read("calls")).toEqual([id]);
});

it.each([
  [
    "ends with another code",
    "echo 'no such partition' >&2; exit 3",
    /ended with exit code 3: no such partition/,
  ],
  ["floods", "yes error >&2 & yes | head -c 3000000; exit 1", /exit code 1: error$/],
  ["kills itself", "kill -9 $$", /ended with exit code 137/],
])("a command that %s is a failed start with its reason [LCH-1]", async (_what, lines, reason) => {
  await using world = await openLaunchWorld(async (folder) => ({
    gpu: { command: [await writeCommand(folder, lines)] },
  }));
  const task = await createLaunchedTask(world);
  expect(await world.waitForReason(task, reason)).toMatchObject({
    status: "pending",
    attempt: 0,
    launch: null,
  });
  const [launcher] = await world.app.call("GET /api/launchers");
  expect(launcher).toMatchObject({
    failures: 1,
    paused: false,
    open: 0,
    last_error: expect.stringMatching(reason),
  });
});

it("a missing program is a failed start [LCH-1]", async () => {
  await using world = await openLaunchWorld(() => Promise.resolve({ gpu: { command: ["/nowhere/sbatch"] } }));
  await world.waitForReason(await createLaunchedTask(world), /\/nowhere\/sbatch does not exist/);
});

it("a command that hangs is killed with its processes, and its output stays bounded [LCH-1]", async () => {
  await using folder = await createTempDir();
  const call = { env: {}, stdin: "", secret: "", signal: new AbortController().signal };
  const hanging = await writeCommand(folder.path, `sleep 1000 & echo $! >${folder.path}/pid; yes`);
  const result = await runLauncherProgram({ ...call, argv: [hanging], timeoutMs: 500 });
  expect(result).toMatchObject({ kind: "unknown", reason: expect.stringMatching(/may have started a job/) });
  const pid = Number(await Deno.readTextFile(`${folder.path}/pid`));
  await waitUntil("its child is gone", () => !isAlive(pid));
  const token = "a-token-of-a-launch";
  const leaky = await writeCommand(folder.path, `printf '\\033[31m%s\\001 rest' "$T"`);
  expect(
    await runLauncherProgram({ ...call, env: { T: token }, secret: token, argv: [leaky], timeoutMs: 5_000 }),
  )
    .toEqual({ kind: "done", line: "[31m[redacted]  rest" });
});

it.skipIf(findTool("timeout") === null)(
  "a command ends after its time when the service was killed, and its job continues (needs timeout) [LCH-1]",
  async () => {
    await using folder = await createTempDir();
    const pids = `${folder.path}/pids`;
    const hanging = await writeCommand(
      folder.path,
      `setsid sleep 1000 & job=$!; sleep 1000 & echo "$job $! $$" >${pids}.part; mv ${pids}.part ${pids}; wait`,
    );
    const call = JSON.stringify({ argv: [hanging], env: {}, stdin: "", secret: "", timeoutMs: 3_000 });
    const program = new URL("../../src/run/remote/launcher_program.ts", import.meta.url);
    const service = new Deno.Command(Deno.execPath(), {
      args: [
        "eval",
        `import { runLauncherProgram } from "${program}";
        await runLauncherProgram({ ...${call}, signal: new AbortController().signal });`,
      ],
      cwd: ROOT,
      stdin: "null",
    }).spawn();
    await waitUntil("the command runs", () => Deno.stat(pids).then(() => true, () => false));
    service.kill("SIGKILL");
    await service.status;
    const [job = 0, child = 0, command = 0] = (await Deno.readTextFile(pids)).split(" ").map(Number);
    try {
      expect(isAlive(command)).toBe(true);
      await waitUntil("the command has ended with its processes", () => !isAlive(command) && !isAlive(child));
      expect(isAlive(job)).toBe(true);
    } finally {
      for (const pid of [job, child, command]) if (isAlive(pid)) Deno.kill(pid, "SIGKILL");
    }
  },
);

function isAlive(pid: number): boolean {
  try {
    return !/^State:\s+Z/m.test(Deno.readTextFileSync(`/proc/${pid}/status`));
  } catch {
    return false;
  }
}

it("a launch whose command prints nothing continues and says so [LCH-1]", async () => {
  await using world = await openLaunchWorld(() => Promise.resolve({ gpu: { command: ["true"] } }));
  const task = await createLaunchedTask(world);
  await world.waitForReason(task, /whose command printed no id/);
  const runner = await world.openRunner((await world.waitForLaunch("launched")).id);
  const { run } = (await runner.claim(SH)).body;
  expect(run.execution).toMatchObject({ task_id: task });
  expect((await runner.end(run.execution.execution_id)).status).toBe(200);
  await waitUntilCompleted(world.app, task);
});

it("the token makes one claim, which the same process can repeat [LCH-1]", async () => {
  await using world = await openLiar();
  const task = await createLaunchedTask(world);
  const { id } = await world.waitForLaunch("launched");
  const runner = await world.openRunner(id);
  const request = { ...SH, request_id: "01a1fd23-4a4c-746f-99ac-8860e2641168" };
  const first = await runner.claim(request);
  expect(first.body.run.execution.execution_id).toBe(id);
  expect((await runner.claim(request)).body.run.execution).toEqual(first.body.run.execution);
  // Another task of the same label is for another launch.
  await createLaunchedTask(world);
  expect((await runner.claim({ ...SH, wait_ms: 0 })).body.run).toBeNull();
  expect((await runner.beat([id])).body.runs).toMatchObject([{ id, stop: "" }]);
  expect((await runner.end(id)).status).toBe(200);
  // The answer to the last report may have been lost.
  expect((await runner.end(id)).status).toBe(200);
  await waitUntilCompleted(world.app, task);
  await waitUntil("its launch ends", async () => (await runner.claim({ ...SH, wait_ms: 0 })).status === 401);
  expect(await world.read("cancels")).toEqual([]);
});

it("a second process with the token ends the run as lost, and is reported [LCH-1]", async () => {
  await using world = await openLiar();
  await createLaunchedTask(world);
  const { id } = await world.waitForLaunch("launched");
  const [one, other] = [await world.openRunner(id), await world.openRunner(id)];
  expect((await one.claim(SH)).body.run.execution.execution_id).toBe(id);
  expect((await other.claim(SH)).status).toBe(409);
  await waitUntilLost(world.app, id);
  expect((await one.beat([id])).status).toBe(401);
  expect((await one.end(id)).status).toBe(401);
  expect((await other.claim(SH)).status).toBe(401);
  expect(await countEvents(world, "launch.problem")).toBe(1);
  await waitUntil("its job is canceled", async () => (await world.read("cancels")).length === 1);
});

it("the token gives no other run, and no runner its run [LCH-1]", async () => {
  await using world = await openLiar();
  const tasks = [await createLaunchedTask(world), await createLaunchedTask(world)];
  const ids = () => world.read("calls");
  await waitUntil("both are launched", async () => (await ids()).length === 2);
  await waitUntil(
    "both wait",
    async () => (await world.app.db.read("select 1 from launch where state = 'launched'")).length === 2,
  );
  const [first = "", second = ""] = await ids();
  const [one, other] = [await world.openRunner(first), await world.openRunner(second)];
  const runs = [await one.claim(SH), await other.claim(SH)].map(({ body }) => body.run.execution);
  expect(runs.map(({ execution_id }) => execution_id)).toEqual([first, second]);
  expect(new Set(runs.map(({ task_id }) => task_id))).toEqual(new Set(tasks));
  for (
    const reply of [await one.log(second, 0, "lies\n"), await one.events(second, []), await one.end(second)]
  ) {
    expect(reply.status).toBe(409);
  }
  expect((await one.beat([first, second])).body.runs).toMatchObject([{ id: first }]);
  for (const route of ["GET /api/tasks", "GET /api/runners", "GET /api/launchers"]) {
    const reply = await world.app.send(route, undefined, { authorization: `Bearer ${one.token}` });
    expect([route, reply.status]).toEqual([route, 403]);
  }
});

it("a task that is canceled before the claim ends its launch and its job [LCH-1]", async () => {
  await using world = await openLiar();
  const task = await createLaunchedTask(world);
  const { id } = await world.waitForLaunch("launched");
  const runner = await world.openRunner(id);
  await world.app.call(`POST /api/tasks/${task}/cancel`, {});
  await waitUntil("its job is canceled", async () => (await world.read("cancels")).length === 1);
  expect((await runner.claim(SH)).status).toBe(401);
  expect(await world.app.call("GET /api/launchers")).toMatchObject([{ failures: 0, open: 0 }]);
});

it(
  "a run that is canceled after the claim ends by its runner, without the cancel command [LCH-1]",
  async () => {
    await using world = await openLaunchWorld(async (folder) => ({
      gpu: {
        command: [await writeLauncher(folder)],
        cancel: [await writeCommand(folder, `echo "$SVC_LAUNCH_JOB" >>${folder}/cancels`)],
      },
    }));
    const task = await createLaunchedTask(world, "sleep 1000");
    const { id } = await world.waitForLaunch("claimed");
    await waitUntil(
      "it runs",
      async () => (await world.app.call(`GET /api/executions/${id}`)).status === "running",
    );
    await world.app.call(`POST /api/executions/${id}/cancel`, {});
    await world.waitForLaunch("ended");
    expect(await world.app.call(`GET /api/executions/${id}`)).toMatchObject({
      status: "failed",
      failure: "cancelled",
    });
    expect((await world.app.call(`GET /api/tasks/${task}`)).status).not.toBe("pending");
    expect(await world.read("cancels")).toEqual([]);
  },
  60_000,
);

async function findLaunchersCheck(app: App): Promise<{ hint: string }> {
  const { checks } = await app.call("GET /api/system/doctor");
  return checks.find(({ name }: { name: string }) => name === "launchers");
}

it("a launcher is paused after five failed starts in a row, until it is resumed [LCH-1]", async () => {
  await using world = await openLaunchWorld(async (folder) => ({
    gpu: { command: [await writeCommand(folder, `test -e ${folder}/well && echo 12`)] },
  }));
  const { app } = world;
  const task = await createLaunchedTask(world);
  for (let time = 1; time < 5; time++) {
    await waitUntil(
      `start ${time} fails`,
      async () => (await app.call("GET /api/launchers"))[0].failures === time,
    );
    const [{ retry_at, paused }] = await app.call("GET /api/launchers");
    expect((await findLaunchersCheck(app)).hint).toMatch(/tries again by itself/);
    expect([paused, Math.round((retry_at - Date.now()) / 10_000)]).toEqual([false, 2 ** (time - 1)]);
    await app.db.write([{ sql: "update launcher set retry_at = 0", args: [], wakeup: "dispatcher" }]);
  }
  await world.waitForReason(
    task,
    /the launcher gpu is paused after 5 failed starts.*svc ctl launcher resume gpu/,
  );
  expect(await countEvents(world, "launcher.paused")).toBe(1);
  expect(await findLaunchersCheck(app)).toMatchObject({
    status: "warn",
    detail: expect.stringMatching(/^gpu is paused: /),
    hint: expect.stringMatching(/for each that is paused: svc ctl launcher resume/),
  });
  const { token } = await app.call("POST /api/tokens", { name: "phone", scopes: ["read:tasks"] });
  expect(await app.call("GET /api/inbox")).toMatchObject([{
    kind: "launcher_paused",
    id: "gpu",
    title: "gpu",
  }]);
  expect(await app.call("GET /api/inbox", undefined, { authorization: `Bearer ${token}` })).toEqual([]);
  await Deno.writeTextFile(`${world.folder}/well`, "");
  await app.db.write([{ sql: "update launcher set retry_at = 0", args: [], wakeup: "dispatcher" }]);
  expect(await app.call("POST /api/launchers/gpu/resume")).toMatchObject({
    paused: false,
    failures: 0,
    retry_at: null,
  });
  expect(await app.call("GET /api/inbox")).toEqual([]);
  const { id } = await world.waitForLaunch("launched");
  expect((await (await world.openRunner(id)).claim(SH)).body.run.execution.task_id).toBe(task);
  expect((await app.send("POST /api/launchers/none/resume")).status).toBe(404);
});

it("a launcher starts at most `max` runs at a time, and the others say so [LCH-1]", async () => {
  await using world = await openLiar({ max: 2 });
  const tasks: string[] = [];
  for (let count = 0; count < 3; count++) tasks.push(await createLaunchedTask(world));
  const waits = async () => {
    const reasons = await Promise.all(
      tasks.map(async (id) => (await world.app.call(`GET /api/tasks/${id}`)).reason),
    );
    return reasons.filter((reason) => /has 2 of 2 launches open/.test(reason)).length;
  };
  await waitUntil("one waits", async () => await waits() === 1);
  await waitUntil("two are launched", async () => (await world.read("calls")).length === 2);
  const [first = ""] = await world.read("calls");
  const runner = await world.openRunner(first);
  await runner.claim(SH);
  expect(await world.app.call("GET /api/launchers")).toMatchObject([{ open: 1, running: 1 }]);
  await runner.end(first);
  await waitUntil("the third is launched", async () => (await world.read("calls")).length === 3);
});

it("a connected runner with a free slot comes before a launcher [LCH-1]", async () => {
  await using world = await openLiar();
  const { app } = world;
  const runner = await createFakeRunner(app);
  await runner.claim({ ...SH, max_runs: 1, wait_ms: 0 });
  const task = await createLaunchedTask(world);
  const { run } = (await runner.claim({ ...SH, max_runs: 1 })).body;
  expect(run.execution.task_id).toBe(task);
  expect(await world.read("calls")).toEqual([]);
  // The runner is full now.
  await createLaunchedTask(world);
  await world.waitForLaunch("launched");
});

it("tasks of one conversation are launched one after another [LCH-1]", async () => {
  await using world = await openLiar();
  const worker = await world.createWorker();
  const session = await world.app.call("POST /api/local/sessions", { worker_id: worker });
  const say = () =>
    world.app.call(`POST /api/local/sessions/${session.id}/messages`, { content: "echo hello" });
  await say();
  const { id } = await world.waitForLaunch("launched");
  await say();
  await waitUntil("both wait", async () => (await world.app.call("GET /api/queue")).length === 2);
  const runner = await world.openRunner(id);
  await runner.claim(SH);
  expect(await world.read("calls")).toEqual([id]);
  await runner.end(id);
  await waitUntil("the second is launched", async () => (await world.read("calls")).length === 2);
});

it.each([
  ["keeps a directory", { home: "" }, /its worker keeps a directory. Set home none/],
  ["names a secret", { env: { KEY: "secret:key" } }, /its worker names a secret in its variables/],
  ["holds *:*", { scopes: ["*:*"] }, /may not run a worker that holds \*:\*/],
])("a task whose worker %s waits, and says the way out [LCH-1]", async (_what, change, reason) => {
  await using world = await openLiar();
  await world.app.call("PUT /api/secrets/key", { value: "a secret value" });
  const worker = await createRemoteWorker(world.app, "sh", { home: "none", ...change });
  expect((await world.app.call(`GET /api/workers/${worker}/status`)).detail).toBeTypeOf("string");
  const task = await createTask(world.app, worker, "echo hello");
  expect(await world.waitForReason(task, reason)).toMatchObject({ held_by: { kind: "runner" } });
  expect(await world.read("calls")).toEqual([]);
});

it.each([
  ["has no engine for the run", { engines: [{ name: "echo", agent: false }] }, /does not have the engine sh/],
  [
    "cannot set up a box and says why",
    { ...SH, box_fault: "the kernel refuses namespaces. Allow them" },
    /cannot set one up: the kernel refuses namespaces. Allow them$/,
  ],
  ["cannot set up a box", SH, /install bubblewrap there, and set isolation.box.user if it runs as root$/],
])(
  "a runner that %s holds the tasks of that worker, and is no failed start [LCH-1]",
  async (what, claim, reason) => {
    await using world = await openLiar();
    const { app } = world;
    const isolation = /box/.test(what) ? { isolation: { box: { network: "host" } } } : {};
    const worker = await world.createWorker(isolation);
    const tasks = [await createTask(app, worker, "echo one"), await createTask(app, worker, "echo two")];
    await waitUntil("both are launched", async () => await countLaunches(world, "launched") === 2);
    for (const id of await world.read("calls")) {
      const runner = await world.openRunner(id);
      expect((await runner.claim(claim)).body.run).toBeNull();
      expect((await runner.claim(SH)).status).toBe(401);
    }
    for (const task of tasks) {
      const { status, attempt, held_by } = await world.waitForReason(task, reason);
      expect({ status, attempt, held_by }).toMatchObject({
        status: "pending",
        attempt: 0,
        held_by: { kind: "launch", id: "gpu", advice: expect.stringMatching(/resume it/) },
      });
      expect(Math.round((held_by.until - Date.now()) / 10_000)).toBe(1);
    }
    await waitUntil("both jobs are canceled", async () => (await world.read("cancels")).length === 2);
    expect(await app.call("GET /api/launchers")).toMatchObject([{ failures: 0, paused: false, open: 0 }]);
    // Another worker is not held.
    const other = await createLaunchedTask(world);
    await world.waitForReason(other, /^waits for job 12 of the launcher gpu/);
    expect(await world.read("calls")).toHaveLength(3);
  },
);

async function countLaunches(world: LaunchWorld, state: string): Promise<number> {
  return (await world.app.db.read("select 1 from launch where state = ?", [state])).length;
}

it.skipIf(Deno.uid() !== 0)(
  "the reason has what svc runner says about its box (needs root) [LCH-1]",
  async () => {
    await using world = await openLaunchWorld(async (folder) => ({
      gpu: { command: [await writeOnceLauncher(folder)] },
    }));
    const task = await createTask(world.app, await world.createWorker({ isolation: "box" }), "echo hello");
    await world.waitForReason(task, /cannot set one up: svc runs as root, .* set isolation.box.user$/);
  },
  120_000,
);

it("after the pause, one launch shows whether the tasks of a refused worker can start [LCH-1]", async () => {
  await using world = await openLiar();
  const { app } = world;
  const worker = await world.createWorker();
  const first = await createTask(app, worker, "echo one");
  const refuse = async () => {
    const runner = await world.openRunner((await world.waitForLaunch("launched")).id);
    await runner.claim({ engines: [{ name: "echo", agent: false }] });
  };
  await refuse();
  await world.waitForReason(first, /tries again later for this worker/);
  const second = await createTask(app, worker, "echo two");
  await world.waitForReason(second, /tries again later for this worker/);
  // The second refusal comes half a minute after the first.
  const age = (ms: number) =>
    app.db.write([{
      sql: "update launch set ended_at = ended_at - ? where ended_at is not null",
      args: [ms],
      wakeup: "dispatcher",
    }, { sql: "update worker set updated_at = 0", args: [] }]);
  await age(30_000);
  await refuse();
  await waitUntil("the pause is longer", async () => {
    const tasks = await app.call(`GET /api/tasks?worker_id=${worker}`);
    return tasks.every(({ held_by }: { held_by: { until: number } | null }) =>
      (held_by?.until ?? 0) > Date.now() + 20_000
    );
  });
  expect(await world.read("calls")).toHaveLength(2);
  await age(60_000);
  const { id } = await world.waitForLaunch("launched");
  const runner = await world.openRunner(id);
  expect((await runner.claim(SH)).body.run.execution.execution_id).toBe(id);
  await waitUntil("the others are launched", async () => (await world.read("calls")).length === 4);
  // A change of the worker ends its pause, too.
  const { id: last } = await world.waitForLaunch("launched");
  await (await world.openRunner(last)).claim({ engines: [{ name: "echo", agent: false }] });
  await waitUntil("it waits", async () => await countLaunches(world, "launched") === 0);
  await app.call(`PUT /api/workers/${worker}`, { name: "changed" });
  await waitUntil("it is launched again", async () => (await world.read("calls")).length === 5);
});

it("the state command moves the deadline, and a job that ended is a failed start [LCH-1]", async () => {
  await using world = await openLaunchWorld(async (folder) => ({
    gpu: {
      command: [await writeCommand(folder, "echo 12")],
      state: [await writeCommand(folder, `cat ${folder}/state`)],
      start_timeout: "1s",
    },
  }));
  const { app, folder } = world;
  await Deno.writeTextFile(`${folder}/state`, "pending\n");
  const task = await createLaunchedTask(world);
  await world.waitForReason(task, /job 12 of the launcher gpu \(pending\)/);
  const read = () =>
    app.db.first<{ deadline_at: number }>("select deadline_at from launch where ended_at is null");
  expect((await read())?.deadline_at).toBeGreaterThan(Date.now() + 3_600_000);
  await Deno.writeTextFile(`${folder}/state`, "ended\n");
  await world.waitForReason(task, /job 12 ended before it started a runner/);
}, 60_000);

it("a running job has `start_timeout` from its start, whatever the state command adds [LCH-1]", async () => {
  await using world = await openLaunchWorld(async (folder) => ({
    gpu: {
      command: [await writeCommand(folder, "echo 12")],
      state: [await writeCommand(folder, "echo running $(date +%s)")],
      start_timeout: "6s",
    },
  }));
  await createLaunchedTask(world);
  await world.waitForLaunch("launched");
  const readDeadline = () =>
    world.app.db.readValue<number>("select deadline_at from launch where job_state <> ''");
  await waitUntil("its state is known", async () => await readDeadline() !== null);
  const deadline = await readDeadline();
  await world.waitForLaunch("ended");
  expect(await readDeadline()).toBe(deadline);
});

it("a cancel command that fails runs three times, and is then reported [LCH-1]", async () => {
  await using world = await openLiar({
    start_timeout: "1s",
    cancel: ["false"],
  });
  await createLaunchedTask(world);
  const { id } = await world.waitForLaunch("ended");
  for (const count of [1, 2]) {
    const read = () =>
      world.app.db.first<{ cancels: number }>("select cancels from launch where id = ?", [id]);
    await waitUntil(`attempt ${count}`, async () => (await read())?.cancels === count);
    await world.app.db.write([{
      sql: "update launch set cancel_at = 0 where id = ?",
      args: [id],
      wakeup: "launches",
    }]);
  }
  await waitUntil("it is reported", async () => await countEvents(world, "launch.problem") === 1);
  const left = await world.app.db.first("select cancels, cancel_at from launch where id = ?", [id]);
  expect(left).toEqual({ cancels: 3, cancel_at: null });
});

it("a launch whose launcher left the configuration ends, and its job is reported [LCH-1]", async () => {
  await using folder = await createTempDir();
  const dataDir = `${folder.path}/data`;
  const config = { engines: ENGINES };
  {
    await using world = await openLiar({}, { dataDir, config });
    await createLaunchedTask(world);
    await world.waitForLaunch("launched");
  }
  await using app = await openApp({ dataDir, config });
  const read = () => app.db.read<{ data: string }>("select data from journal where kind = 'launch.problem'");
  await waitUntil("it is reported", async () => (await read()).length > 0);
  expect((await read()).map(({ data }) => JSON.parse(data).detail)).toEqual([
    "the launcher gpu is no longer configured, so nothing has canceled job 12, which may still exist",
  ]);
  expect(await app.db.first("select state, cancel_at from launch")).toEqual({
    state: "ended",
    cancel_at: null,
  });
});

it("a client of /v1 gets no words of a launcher's command [LCH-1]", async () => {
  await using world = await openLaunchWorld(async (folder) => ({
    gpu: { command: [await writeCommand(folder, "echo 'quota of /secret/path' >&2; exit 3")] },
  }));
  const worker = await world.createWorker();
  const task = await createTask(world.app, worker, "echo hello");
  expect(await world.waitForReason(task, /quota of \/secret\/path/)).toMatchObject({
    held_by: { kind: "launch", id: "gpu", advice: expect.stringMatching(/tries again by itself.*resume it/) },
  });
  const { status, body } = await world.app.send("POST /v1/chat/completions", {
    model: worker,
    messages: [{ role: "user", content: "echo hello" }],
  });
  expect([status, body.error.message]).toEqual([429, expect.stringMatching(/no runner can be started/)]);
  expect(JSON.stringify(body)).not.toMatch(/quota|path|exit/);
});
