import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { type App, openApp } from "../harness/service/app.ts";
import { SVC } from "../harness/service/process.ts";
import { createRemoteWorker, createTask, waitUntilCompleted } from "../harness/service/runner.ts";
import { ROOT } from "../harness/house/tree.ts";
import { waitUntil } from "../harness/wait.ts";
import { MISSING, SlurmCluster } from "./cluster.ts";

const SCRIPTS = join(ROOT, "packaging/launchers/slurm");
const ENGINES = { default: "sh", sh: { kind: "command", command: "/bin/sh" } };
const WAIT_MAX_MS = 110_000;
// The long run: SVC_TEST_SLURM_TASKS=50. Jobs at a time are few, because they share the machine with other tests.
const TASKS = Number(Deno.env.get("SVC_TEST_SLURM_TASKS") ?? 12);
const JOBS_MAX = 4;
const ABSENT = MISSING.length === 0
  ? ""
  : ` (skipped: ${MISSING.join(", ")} of slurm-wlm and munge are missing)`;
const SKIPPED = ABSENT === "" && Deno.uid() !== 0 ? " (skipped: the test of Slurm needs root)" : ABSENT;

interface WorldOptions {
  cpus?: number;
  /** Settings of the launcher. */
  launcher?: object;
  /** A program `sbatch` before Slurm's own, whose path is $REAL. */
  sbatch?: string;
}

/** A service whose launcher submits jobs to a Slurm with the commands of packaging/. */
class World implements AsyncDisposable {
  constructor(readonly app: App, readonly cluster: SlurmCluster, readonly worker: string) {}

  get folder(): string {
    return this.cluster.folder;
  }

  static async open({ cpus = 4, launcher = {}, sbatch }: WorldOptions = {}): Promise<World> {
    const cluster = await SlurmCluster.start(cpus);
    try {
      const { folder } = cluster;
      await writeJob(folder);
      if (sbatch !== undefined) {
        await writeProgram(join(folder, "bin/sbatch"), `REAL=/usr/bin/sbatch\n${sbatch}`);
      }
      const env = [`SLURM_CONF=${folder}/slurm.conf`, `PATH=${folder}/bin:/usr/bin:/bin`];
      const call = (name: string) => ["/usr/bin/env", ...env, join(folder, "slurm", name)];
      const slurm = {
        ...{ labels: ["x"], command: call("launch"), state: call("state"), cancel: call("cancel") },
        ...launcher,
      };
      const app = await openApp({ config: { engines: ENGINES, launchers: { slurm } } });
      return new World(app, cluster, await createRemoteWorker(app, "sh", { home: "none" }));
    } catch (error) {
      await cluster[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Resolves with the task when `check` returns true for it. */
  async wait(what: string, task: string, check: (task: Json) => boolean): Promise<Json> {
    let found: Json = null;
    await waitUntil(
      what,
      async () => check(found = await this.app.call(`GET /api/tasks/${task}`)),
      WAIT_MAX_MS,
    );
    return found;
  }

  async readResult(task: string): Promise<string> {
    const { execution_id } = await this.app.call(`GET /api/tasks/${task}`);
    return (await this.app.call(`GET /api/executions/${execution_id}`)).result;
  }

  /** Resolves when no job is in the queue, and the jobs left no directory. */
  async waitUntilClean(): Promise<void> {
    await waitUntil("the queue is empty", async () => (await this.cluster.jobs()).length === 0, WAIT_MAX_MS);
    expect([...Deno.readDirSync(join(this.folder, "tmp"))]).toEqual([]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.app[Symbol.asyncDispose]();
    await this.cluster[Symbol.asyncDispose]();
  }
}

// deno-lint-ignore no-explicit-any
type Json = any;

async function writeProgram(path: string, text: string): Promise<void> {
  await Deno.mkdir(join(path, ".."), { recursive: true });
  await Deno.writeTextFile(path, `#!/bin/sh\n${text}\n`, { mode: 0o755 });
}

/** Copies the commands, with a job that starts this program. */
async function writeJob(folder: string): Promise<void> {
  for (const name of ["launch", "state", "cancel"]) {
    await Deno.mkdir(join(folder, "slurm"), { recursive: true });
    await Deno.copyFile(join(SCRIPTS, name), join(folder, "slurm", name));
  }
  await Deno.mkdir(join(folder, "tmp"));
  await Deno.writeTextFile(join(folder, "runner.yaml"), `engines: ${JSON.stringify(ENGINES)}\n`);
  const words = [...SVC, "runner", "--once", "-c", join(folder, "runner.yaml")].map((word) => `'${word}'`);
  const job = `export TMPDIR=${folder}/tmp\nexec ${words.join(" ")} 2>>${folder}/runner.log`;
  await writeProgram(join(folder, "slurm/job"), job);
}

describe.skipIf(SKIPPED !== "")(`runs on a real Slurm [LCH-1]${SKIPPED}`, () => {
  it(`${TASKS} tasks run in at most ${JOBS_MAX} concurrent jobs, and leave nothing behind`, async () => {
    await using world = await World.open({ cpus: 64, launcher: { max: JOBS_MAX } });
    const { app, worker, folder } = world;
    const script =
      `echo start >>${folder}/ledger; sleep 0.5; echo end >>${folder}/ledger; echo "$SVC_TASK_ID"`;
    const tasks = await Promise.all(Array.from({ length: TASKS }, () => createTask(app, worker, script)));
    for (const task of tasks) await world.wait("it completes", task, ({ status }) => status === "completed");
    for (const task of tasks) expect(await world.readResult(task)).toBe(task);
    const steps = (await Deno.readTextFile(join(folder, "ledger"))).trim().split("\n");
    let most = 0;
    steps.reduce((open, step) => {
      const now = open + (step === "start" ? 1 : -1);
      most = Math.max(most, now);
      return now;
    }, 0);
    expect([steps.length, most <= JOBS_MAX]).toEqual([2 * TASKS, true]);
    const executions = await app.call(`GET /api/executions?worker_id=${worker}&page_size=100`);
    expect(new Set(executions.map(({ status, attempt }: Json) => `${status} ${attempt}`))).toEqual(
      new Set(["completed 1"]),
    );
    expect(executions).toHaveLength(TASKS);
    expect(executions[0].launch).toMatchObject({ launcher: "slurm", job: expect.stringMatching(/^\d+$/) });
    expect(await app.call(`GET /api/executions/${executions[0].id}/logs`)).toContain("[completed]");
    await world.waitUntilClean();
  }, 2 * WAIT_MAX_MS);

  it(
    "a job gets the file of a message, the resources of the worker, and its token by no variable",
    async () => {
      await using world = await World.open();
      const { app, folder } = world;
      const resources = { cpus: 1.5, memory: "200M", time: "90s" };
      const worker = await createRemoteWorker(app, "sh", { home: "none", resources });
      const session = await app.call("POST /api/local/sessions", { worker_id: worker });
      const form = new FormData();
      form.set("file", new File(["what is in it"], "note.txt"));
      const response = await fetch(`${app.url}/api/local/sessions/${session.id}/media`, {
        method: "POST",
        headers: { authorization: `Bearer ${await app.token()}` },
        body: form,
      });
      const { path: media_path } = await response.json();
      const content =
        `cat "${folder}"/tmp/svc-run-*/files/*/*; touch ${folder}/here; until test -e ${folder}/go; do sleep 0.1; done`;
      await app.call(`POST /api/local/sessions/${session.id}/messages`, { content, media_path });
      await waitUntil(
        "it runs",
        () => Deno.stat(join(folder, "here")).then(() => true, () => false),
        WAIT_MAX_MS,
      );
      const [{ id }] = await app.call(`GET /api/executions?worker_id=${worker}`);
      const shown = await world.cluster.call("scontrol", "show", "job", "-o");
      expect(shown).toMatch(
        new RegExp(`JobName=svc-${id} .*TimeLimit=00:02:00 .*NumCPUs=2 .*MinMemoryNode=200M`),
      );
      const kept = await new Deno.Command("grep", { args: ["-rl", "eyJ", join(folder, "ctld")] }).output();
      expect(new TextDecoder().decode(kept.stdout)).toBe("");
      await Deno.writeTextFile(join(folder, "go"), "");
      await waitUntil(
        "it completes",
        async () => (await app.call(`GET /api/executions/${id}`)).status === "completed",
        WAIT_MAX_MS,
      );
      expect((await app.call(`GET /api/executions/${id}`)).result).toBe("what is in it");
      await world.waitUntilClean();
    },
    2 * WAIT_MAX_MS,
  );

  it("a job works on the branch of its conversation, and the service has the diff", async () => {
    await using world = await World.open();
    const { app, folder } = world;
    const path = join(folder, "repo");
    const script = `git init -qb main ${path} && cd ${path} && echo one >note &&
      git add note && git -c user.name=a -c user.email=a@b.c commit -qm first`;
    await new Deno.Command("sh", { args: ["-c", script] }).output();
    const worker = await createRemoteWorker(app, "sh", { repo: { path } });
    const session = await app.call("POST /api/local/sessions", { worker_id: worker });
    for (const [line, lines] of [["two", ["one", "two"]], ["three", ["one", "two", "three"]]] as const) {
      const content = `echo ${line} >>note; cat note`;
      const sent = await app.call(`POST /api/local/sessions/${session.id}/messages`, { content });
      const find = async () => {
        const all = await app.call(`GET /api/executions?worker_id=${worker}`);
        return all.find(({ message_id }: Json) => message_id === sent.message_id);
      };
      await waitUntil("it completes", async () => (await find())?.status === "completed", WAIT_MAX_MS);
      const { id: execution, result, launch } = await find();
      expect([result.split("\n"), launch.launcher]).toEqual([lines, "slurm"]);
      expect(await app.call(`GET /api/executions/${execution}/diff`)).toContain(`\n+${line}\n`);
    }
    await world.waitUntilClean();
  }, 2 * WAIT_MAX_MS);

  it("scancel from outside returns the task to the queue, and another job does it", async () => {
    await using world = await World.open();
    const { app, worker, folder } = world;
    const script = `test ! -e ${folder}/mark || { echo again; exit; }; touch ${folder}/mark; sleep 600`;
    const task = await createTask(app, worker, script);
    await waitUntil(
      "it runs",
      () => Deno.stat(join(folder, "mark")).then(() => true, () => false),
      WAIT_MAX_MS,
    );
    await world.cluster.call("scancel", "--state=RUNNING", "--user=root");
    await world.wait("it completes", task, ({ status }) => status === "completed");
    expect(await world.readResult(task)).toBe("again");
    const executions = await app.call(`GET /api/executions?worker_id=${worker}`);
    expect(executions.map(({ status }: Json) => status)).toEqual(["completed", "failed"]);
    await world.waitUntilClean();
  }, 2 * WAIT_MAX_MS);

  it("a job that can never start is canceled at its deadline, and the task says why it waits", async () => {
    await using world = await World.open({
      cpus: 2,
      launcher: { launch_expires: "8s", start_timeout: "2s" },
    });
    const { app, cluster } = world;
    const worker = await createRemoteWorker(app, "sh", { home: "none", resources: { cpus: 9 } });
    const task = await createTask(app, worker, "echo never");
    const isStuck = ({ reason }: Json) =>
      /job \d+ of the launcher slurm \(pending PartitionConfig\)/.test(reason);
    const queued = await world.wait("it says why it waits", task, isStuck);
    expect(queued.launch).toMatchObject({ launcher: "slurm", state: "launched", job: expect.any(String) });
    await waitUntil("it waits", async () => (await cluster.jobs()).some((job) => / PENDING /.test(job)));
    const late = await world.wait(
      "it says why",
      task,
      ({ reason }) => /did not|deadline|start/.test(reason) && !isStuck({ reason }),
    );
    expect([late.status, late.attempt]).toEqual(["pending", 0]);
    await waitUntil("it is canceled", async () => (await cluster.jobs()).length === 0, WAIT_MAX_MS);
    await app.call(`POST /api/tasks/${task}/cancel`);
  }, 2 * WAIT_MAX_MS);

  it("a job waits while its node is drained, and runs when the node is back", async () => {
    await using world = await World.open();
    const { app, cluster } = world;
    const node = await cluster.call("hostname", "-s");
    await cluster.call("scontrol", "update", `nodename=${node}`, "state=drain", "reason=test");
    const task = await createTask(app, world.worker, "echo here");
    await world.wait(
      "it says why it waits",
      task,
      ({ reason }) => /\(pending (Resources|ReqNodeNotAvail)/.test(reason),
    );
    await cluster.call("scontrol", "update", `nodename=${node}`, "state=resume");
    await world.wait("it completes", task, ({ status }) => status === "completed");
    await world.waitUntilClean();
  }, 2 * WAIT_MAX_MS);

  it.each([
    ["prints nothing", `exec "$REAL" "$@" >/dev/null`],
    ["floods", `"$REAL" "$@"; yes flood | head -c 3000000`],
    ["hangs after it", `"$REAL" "$@"; sleep 600`],
  ])("a launch command whose sbatch %s: the job does the task once", async (_fault, sbatch) => {
    await using world = await World.open({ sbatch });
    const { app, worker } = world;
    const task = await createTask(app, worker, "echo here");
    await world.wait("it completes", task, ({ status }) => status === "completed");
    expect(await app.call(`GET /api/executions?worker_id=${worker}`)).toHaveLength(1);
    await world.waitUntilClean();
  }, 2 * WAIT_MAX_MS);

  it("an sbatch that fails: the task says why, and runs when sbatch works", async () => {
    await using world = await World.open({
      sbatch:
        `test -e ${"$"}{SLURM_CONF%/*}/works || { echo "Invalid partition name" >&2; exit 1; }; exec "$REAL" "$@"`,
    });
    const { app, worker, folder } = world;
    const task = await createTask(app, worker, "echo here");
    const waiting = await world.wait("it says why", task, ({ reason }) => /Invalid partition/.test(reason));
    expect([waiting.status, waiting.attempt]).toEqual(["pending", 0]);
    await Deno.writeTextFile(join(folder, "works"), "");
    await waitUntilCompleted(app, task);
    await world.waitUntilClean();
  }, 2 * WAIT_MAX_MS);
});
