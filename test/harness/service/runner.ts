import { join } from "node:path";
import type { App } from "./app.ts";
import { endProcess, StderrReader, SVC } from "./process.ts";
import { waitUntil } from "../wait.ts";

interface RunnerOptions {
  token: string;
  /** The service's address, as the runner sees it. */
  url: string;
  root: string;
  /** Lines of runner.yaml after work_root. */
  config?: string;
  env?: Record<string, string>;
}

/** A real `svc runner` process. */
export class RunnerProcess {
  readonly #stderr: StderrReader;

  constructor(readonly child: Deno.ChildProcess, readonly root: string) {
    this.#stderr = new StderrReader(child);
  }

  get stderr(): string {
    return this.#stderr.text;
  }

  /** Resolves with the exit code. */
  async wait(): Promise<number> {
    return (await this.#stderr.ended).code;
  }

  /** Sends a signal and waits for the end; returns the exit code. */
  async end(signal: Deno.Signal = "SIGTERM"): Promise<number> {
    return (await endProcess(this.child, signal, this.#stderr.ended)).code;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.end("SIGKILL");
  }
}

/** Starts `svc runner`; it need not be connected yet. */
export async function startRunner(options: RunnerOptions): Promise<RunnerProcess> {
  const { token, url, root, config = "", env = {} } = options;
  await Deno.mkdir(root, { recursive: true });
  const tokenFile = join(root, "..", `${root.split("/").at(-1)}.token`);
  await Deno.writeTextFile(tokenFile, token, { mode: 0o600 });
  const file = join(root, "..", `${root.split("/").at(-1)}.yaml`);
  await Deno.writeTextFile(file, `work_root: ${root}\n${config}`);
  const [command = "", ...rest] = SVC;
  const child = new Deno.Command(command, {
    args: [...rest, "runner", "--url", url, "--token-file", tokenFile, "-c", file],
    cwd: root,
    env,
    stdin: "null",
    stdout: "null",
    stderr: "piped",
  }).spawn();
  return new RunnerProcess(child, root);
}

/**
 * Starts `svc runner --once` with the environment of a launcher. Its directories and those of its agents are below `folder`.
 */
export async function startRunnerOnce(
  { folder, token, url, config = "", program = SVC }: {
    folder: string;
    token: string;
    url: string;
    /** Lines of runner.yaml. */
    config?: string;
    program?: readonly string[];
  },
): Promise<RunnerProcess> {
  for (const name of ["tmp", "home"]) await Deno.mkdir(join(folder, name), { recursive: true });
  const tokenFile = join(folder, "token");
  await Deno.writeTextFile(tokenFile, token, { mode: 0o600 });
  await Deno.writeTextFile(join(folder, "runner.yaml"), config);
  const [command = "", ...rest] = program;
  const child = new Deno.Command(command, {
    args: [...rest, "runner", "--once", "-c", join(folder, "runner.yaml")],
    cwd: folder,
    env: {
      SVC_RUNNER_URL: url,
      SVC_RUNNER_TOKEN_FILE: tokenFile,
      TMPDIR: join(folder, "tmp"),
      HOME: join(folder, "home"),
      DENO_DIR: join(Deno.env.get("HOME") ?? "/", ".cache/deno"),
    },
    stdin: "null",
    stdout: "null",
    stderr: "piped",
  }).spawn();
  return new RunnerProcess(child, join(folder, "tmp"));
}

/** Resolves when the runner is online at the service. */
export async function waitUntilOnline(app: Pick<App, "call">, name: string): Promise<void> {
  await waitUntil(
    `${name} comes`,
    async () => (await app.call(`GET /api/runners/${name}`)).state === "online",
  );
}

/** Formats the lines of runner.yaml for an engine `fake` that writes a ledger. */
export function formatLedgerEngine(command: string, ledger = ""): string {
  const env = ledger === "" ? "" : `, env: { FAKE_LEDGER: ${ledger} }`;
  return `engines:\n  default: fake\n  fake: { kind: command, command: ${command}${env} }\n`;
}

/** Creates a worker for runners with the label `x` and returns its id. */
export async function createRemoteWorker(
  app: Pick<App, "call">,
  engine: string,
  more: object = {},
): Promise<string> {
  const name = `away ${crypto.randomUUID().slice(0, 8)}`;
  return (await app.call("POST /api/workers", { name, engine, runs_on: ["x"], ...more })).id;
}

/** Creates a task for the worker and returns its id. */
export async function createTask(
  app: Pick<App, "call">,
  worker: string,
  instruction: string,
): Promise<string> {
  const body = { worker_id: worker, message_id: "script", type: "immediate", instruction };
  return (await app.call("POST /api/tasks", body)).id;
}

/** Resolves when the task has completed. */
export async function waitUntilCompleted(app: Pick<App, "call">, task: string): Promise<void> {
  await waitUntil(
    `task ${task} completes`,
    async () => (await app.call(`GET /api/tasks/${task}`)).status === "completed",
  );
}

/** Resolves when the run has failed with `server_lost`. */
export async function waitUntilLost(app: Pick<App, "call">, id: string): Promise<void> {
  await waitUntil(
    `run ${id} is lost`,
    async () => (await app.call(`GET /api/executions/${id}`)).failure === "server_lost",
  );
}

/** Creates a runner with the label `x` that consists of requests. */
export async function createFakeRunner(app: App, name = "r1"): Promise<FakeRunner> {
  const { token } = await app.call("POST /api/runners", { name, labels: ["x"] });
  return new FakeRunner(app, token);
}

/**
 * Starts claims, and resolves with them when they wait. Each claim looks for a repeated request before it
 * waits.
 */
export async function startWaitingClaims<T>(
  app: App,
  claims: readonly (() => Promise<T>)[],
): Promise<Promise<T>[]> {
  let looked = 0;
  const { first } = app.db;
  app.db.first = (sql, ...more) => {
    if (sql.includes("remote_run.request_id =")) looked++;
    return first.call(app.db, sql, ...more) as never;
  };
  const begun = claims.map((claim) => claim());
  await waitUntil("they wait", () => looked === claims.length);
  app.db.first = first;
  return begun;
}

const NO_USAGE = { input_tokens: null, output_tokens: null, cost_usd: null };

interface Sender {
  send(
    route: string,
    body?: unknown,
    headers?: Record<string, string>,
    // deno-lint-ignore no-explicit-any
  ): Promise<{ status: number; body: any }>;
}

/** A runner that consists of requests, so that a test controls each of them. */
export class FakeRunner {
  readonly #app: Sender;
  readonly #process = crypto.randomUUID();
  #epoch = 0;

  constructor(app: Sender, readonly token: string, readonly place: string = crypto.randomUUID()) {
    this.#app = app;
  }

  /** Claims a run, and keeps the epoch of the response. */
  async claim(change: object = {}) {
    const reply = await this.#send("POST /api/runners/claim", {
      request_id: crypto.randomUUID(),
      process: this.#process,
      place: this.place,
      epoch: this.#epoch,
      protocol: 1,
      version: "4.9.0",
      work_root: "/nowhere",
      max_runs: 4,
      engines: [{ name: "echo", agent: false }],
      ...change,
    });
    if (reply.status === 200) this.#epoch = reply.body.epoch;
    return reply;
  }

  beat(running: string[]) {
    return this.#send("POST /api/runners/beat", { process: this.#process, epoch: this.#epoch, running });
  }

  log(id: string, offset: number, text: string, { epoch = this.#epoch } = {}) {
    const query = `epoch=${epoch}&offset=${offset}&kind=log`;
    return this.#send(`POST /api/runs/${id}/log?${query}`, text, {
      "content-type": "application/octet-stream",
    });
  }

  events(id: string, events: object[]) {
    return this.#send(`POST /api/runs/${id}/events`, { epoch: this.#epoch, events });
  }

  end(id: string, change: object = {}, interruption: string | null = null) {
    const outcome = {
      status: "completed",
      text: "done",
      failure: "",
      error: "",
      exitCode: 0,
      usage: NO_USAGE,
    };
    const rest = { sessionId: "", sessionUsage: NO_USAGE, reset: null };
    return this.#send(`POST /api/runs/${id}/end`, {
      ...{ epoch: this.#epoch, ran_ms: 5, interruption },
      outcome: { ...outcome, ...rest, ...change },
    });
  }

  #send(route: string, body: unknown, headers: Record<string, string> = {}) {
    return this.#app.send(route, body, { authorization: `Bearer ${this.token}`, ...headers });
  }
}
