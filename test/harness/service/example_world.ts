import { join } from "node:path";
import { expect } from "vitest";
import { type App, openApp } from "./app.ts";
import { createTempDir, SVC } from "./process.ts";
import { type CallResult, ctl } from "../terminal.ts";
import { splitPlainWords } from "../house/examples.ts";

/** The password of every user of the examples, and the input at prompts. */
const WORD = "a long enough word";
const ID = /[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}/;
const LONG_AGO = Date.UTC(2026, 0, 1);

/** A service with everything that examples name: users, workers, schedules, files. */
export class ExampleWorld implements AsyncDisposable {
  readonly #dispose: () => Promise<void>;
  #worker = "";
  #session = "";
  #message = "";

  private constructor(readonly app: App, readonly folder: string, dispose: () => Promise<void>) {
    this.#dispose = dispose;
  }

  static async open(): Promise<ExampleWorld> {
    const folder = await createTempDir();
    const app = await openApp({
      config: {
        auth: { password_hash: "" },
        engines: {
          default: "echo",
          claude: { kind: "command", command: "cat" },
          shouty: { kind: "command", command: "sh", args: ["-c", "tr a-z A-Z"] },
          slow: { kind: "command", command: "sleep", args: ["60"] },
        },
      },
    });
    const chosen = await ctl(app, ["system", "password", "--stdin"], { stdin: `${WORD}\n` });
    expect(chosen.code).toBe(0);
    const world = new ExampleWorld(app, folder.path, async () => {
      await app[Symbol.asyncDispose]();
      await folder[Symbol.asyncDispose]();
    });
    await world.#fill();
    return world;
  }

  async #fill(): Promise<void> {
    const { app } = this;
    this.#worker = (await app.call("POST /api/workers", { name: "Ada" })).id;
    this.#session = (await app.call("POST /api/local/sessions", { name: "work" })).id;
    const said = await app.call(`POST /api/local/sessions/${this.#session}/messages`, {
      content: "@Ada hello",
    });
    this.#message = said.message_id;
    await app.settle();
    for (const name of ["password", "new-password"]) await this.#write(name, `${WORD}\n`);
    await this.#write("question.txt", "@Ada what is new?");
    await this.#write("report.pdf", "%PDF-");
    const task = {
      message_id: "nightly",
      worker_id: "Ada",
      instruction: "Say hello",
      type: "immediate",
    };
    await this.#write("tasks.jsonl", `${JSON.stringify(task)}\n`);
    await this.#write("telegram.yaml", "platforms: {}\n");
    await this.#write("config.yaml", "limits: { max_concurrent_runs: 2 }\n");
    await this.#write("bin/svc", `#!/bin/sh\nexec ${SVC.join(" ")} "$@"\n`);
    await Deno.chmod(join(this.folder, "bin/svc"), 0o755);
  }

  async #write(name: string, text: string): Promise<void> {
    await Deno.mkdir(join(this.folder, "bin"), { recursive: true });
    await Deno.writeTextFile(join(this.folder, name), text);
  }

  /** Runs a command as shown, with its names replaced; in a shell if it needs one. */
  async run(line: string): Promise<CallResult> {
    const [ada] = await this.app.call("GET /api/workers?name=Ada");
    this.#worker = ada?.id ?? this.#worker;
    // A paused worker fills the queue.
    if (ada?.paused && !line.includes("queue cancel")) {
      await this.app.call(`PUT /api/workers/${ada.id}`, { paused: false });
    }
    await this.#prepare(line);
    const [now] = await this.app.call("GET /api/workers?name=Ada");
    this.#worker = now?.id ?? this.#worker;
    const shown = await this.#filled(line);
    const words = splitPlainWords(shown);
    if (words?.[0] === "svc" && words[1] === "ctl") return await this.#call(words.slice(2));
    const { code, stdout, stderr } = await new Deno.Command("bash", {
      args: ["-eu", "-o", "pipefail", "-c", shown],
      cwd: this.folder,
      clearEnv: true,
      env: {
        PATH: `${this.folder}/bin:${Deno.env.get("PATH") ?? ""}`,
        HOME: Deno.env.get("HOME") ?? "/",
        ...this.#env,
        id: this.#worker,
        session: this.#session,
        SVC_MESSAGE_ID: this.#message,
        url: this.app.url,
        auth: `authorization: Bearer ${await this.app.token()}`,
      },
      stdin: "null",
    }).output();
    const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
    return { code, out: text(stdout), err: text(stderr) };
  }

  get #env(): Record<string, string> {
    const { dataDir } = this.app;
    return { SVC_DATA_DIR: dataDir, SVC_SERVER__PORT: "0", XDG_CONFIG_HOME: join(dataDir, "config") };
  }

  async #call(words: string[]): Promise<CallResult> {
    // A command without an end is interrupted after its first output.
    const stop = new AbortController();
    const endless = words[0] === "events" && words.includes("-f");
    // The service may stop before these runs end. An example that needs them waits for them.
    if (endless) void this.#failATask().catch(() => {});
    if (words[0] === "ask" && words.includes("--wait")) void this.#answer().catch(() => {});
    return await ctl(this.app, words, {
      cwd: this.folder,
      stdin: `${WORD}\n${WORD}\n${WORD}\n`,
      terminal: /^(login|system password|user (password|create))/.test(words.join(" ")),
      signal: stop.signal,
      env: this.#env,
      onOut: () => endless && stop.abort(),
    });
  }

  async #answer(): Promise<void> {
    while (true) {
      const open: { id: string; text: string }[] = await this.app.call("GET /api/questions?status=open");
      const asked = open.find(({ text }) => text.startsWith("Which"));
      if (asked !== undefined) {
        return void await this.app.call(`POST /api/questions/${asked.id}/answer`, { answer: "svc" });
      }
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  async #failATask(): Promise<void> {
    await this.app.listening(() => Promise.resolve());
    const { execution_id } = await this.#runningTask();
    await this.app.call(`POST /api/executions/${execution_id}/cancel`, {});
  }

  /** Creates what an example presumes. */
  async #prepare(line: string): Promise<void> {
    const { app } = this;
    const [, , group = "", command = ""] = line.split(" ");
    // Each example runs as this machine's operator unless it logs in.
    await Deno.remove(join(app.dataDir, "config"), { recursive: true }).catch(() => {});
    if (group === "memory") {
      await app.call("PUT /api/memory/entry", { scope: "global", key: "tone", value: "short" });
    }
    if (group === "queue" && command === "cancel") await this.#fillQueue(12);
    const [, named] = /worker create -n (\w+)/.exec(line) ?? [];
    if (named !== undefined) await this.#removeWorkers(named);
    if (group === "department") {
      const absent = command === "create" ? /--name (\w+)/.exec(line)?.[1] : undefined;
      await this.#departments(["Market", "Research", "Sales"].filter((name) => name !== absent));
    }
    if (group === "user" || group === "token" || line.includes("--username ada")) {
      await this.#people(command !== "create" || group !== "user");
    }
    if (group === "logout" || group === "context") {
      const login = ["login", app.url, "--username", "admin"];
      expect((await this.#call(login)).code).toBe(0);
    }
    if (group === "token") {
      for (const { id } of await app.call("GET /api/tokens")) await app.call(`DELETE /api/tokens/${id}`);
    }
    // With one worker a message needs no name.
    if (group === "chat" || group === "export") {
      for (const { id } of await app.call("GET /api/workers?page_size=200")) {
        if (id !== this.#worker) await app.call(`DELETE /api/workers/${id}`);
      }
    }
    if (command === "rotate-key") await this.#endRuns();
    if (command === "backup") await Deno.remove(join(this.folder, "svc.tar")).catch(() => {});
    if (group === "budget") {
      for (const { id } of await app.call("GET /api/budgets")) await app.call(`DELETE /api/budgets/${id}`);
      const month = { name: "Month", unit: "usd", limit: 50, period: "month" };
      if (command !== "create") await app.call("POST /api/budgets", month);
    }
    if (group === "webhook") {
      await app.send("POST /api/webhooks", {
        name: "ci",
        url: "https://example.org/hook",
        events: ["task.*"],
        enabled: false,
      });
    }
    if (["apply", "diff"].includes(group)) await this.#write("fleet.yaml", "memory: {}\n");
    if (group === "config") await this.#write("config.yaml", "limits: { max_concurrent_runs: 2 }\n");
  }

  async #departments(wanted: string[]): Promise<void> {
    for (const name of ["Market", "Research", "Sales"]) {
      if (wanted.includes(name)) await this.app.send("POST /api/departments", { name });
      else await this.app.send(`DELETE /api/departments/${name}`);
    }
  }

  // A mention reaches a worker only while no other worker has its name.
  async #removeWorkers(name: string): Promise<void> {
    for (const { id } of await this.app.call(`GET /api/workers?name=${name}`)) {
      await this.app.call(`DELETE /api/workers/${id}`);
    }
  }

  async #people(wanted: boolean): Promise<void> {
    const { app } = this;
    for (const [name, role] of [["ada", "operator"], ["eve", "viewer"]]) {
      if (!wanted) await app.send(`DELETE /api/users/${name}`);
      else await app.send("POST /api/users", { name, role, password: WORD });
    }
  }

  async #fillQueue(count: number): Promise<void> {
    await this.app.call(`PUT /api/workers/${this.#worker}`, { paused: true });
    for (let at = 0; at < count; at++) await this.#task({ type: "immediate" });
  }

  async #task(rest: Record<string, unknown>, worker = this.#worker) {
    const task = { message_id: "shown", worker_id: worker, instruction: "hello", ...rest };
    return await this.app.call("POST /api/tasks", task);
  }

  async #endRuns(): Promise<void> {
    for (const { id } of await this.app.call("GET /api/executions?status=pending,running")) {
      await this.app.call(`POST /api/executions/${id}/cancel`, {});
    }
    await this.app.settle();
  }

  async #runningTask() {
    const worker = await this.app.call("POST /api/workers", { name: "Slow", engine: "slow" });
    const { id } = await this.#task({ type: "immediate" }, worker.id);
    while (true) {
      const task = await this.app.call(`GET /api/tasks/${id}`);
      if (task.status === "running") return task;
      await this.app.until("execution.started");
    }
  }

  async #cancelledTask(): Promise<string> {
    const { id } = await this.#task({ type: "countdown", scheduled_at: Date.now() + 3_600_000 });
    await this.app.call(`POST /api/tasks/${id}/cancel`, {});
    return id;
  }

  #question() {
    const question = { message_id: this.#message, text: `Is it right? ${crypto.randomUUID()}` };
    return this.app.call("POST /api/questions", question);
  }

  async #asking(questionId: string): Promise<string> {
    const said = await this.app.call(`GET /api/local/sessions/${this.#session}/messages`);
    return said.find((one: Record<string, string>) => one.question_id === questionId).id;
  }

  /** Replaces the shown ids, paths and addresses by those of this world. */
  async #filled(line: string): Promise<string> {
    const words = line
      .replaceAll("https://svc.example.org", this.app.url)
      .replaceAll("/backups/", `${this.folder}/`)
      .replaceAll("/etc/svc/config.yaml", join(this.folder, "config.yaml"))
      .replaceAll("--after 1200", "--after 1")
      .replaceAll("$id", this.#worker).replaceAll("<id>", this.#worker)
      .replaceAll("$session", this.#session).replaceAll("$SVC_MESSAGE_ID", this.#message)
      .replaceAll(String(LONG_AGO), "0");
    return ID.test(line) ? words.replace(ID, await this.#idFor(line)) : words;
  }

  async #idFor(line: string): Promise<string> {
    const [, , group = "", command = ""] = line.split(" ");
    const { app } = this;
    switch (group) {
      case "worker":
        return (await app.call("POST /api/workers", { name: `Worker for ${command}` })).id;
      case "task":
        if (command === "retry") return await this.#cancelledTask();
        return command === "wait" || command === "create"
          ? (await this.#task({ type: "immediate" })).id
          : (await this.#task({ type: "scheduled", cron: "0 0 1 1 *" })).id;
      case "schedule":
        return (await this.#task({ type: "scheduled", cron: "0 0 1 1 *", paused: command === "resume" })).id;
      case "execution":
        return command === "cancel"
          ? (await this.#runningTask()).execution_id
          : (await app.call("GET /api/executions?page_size=1"))[0].id;
      case "chat":
        return await this.#asking((await this.#question()).id);
      case "question":
        return (await this.#question()).id;
      case "message":
        return this.#message;
      case "token":
        return (await app.call("POST /api/tokens", { name: "shown", scopes: ["read:tasks"] })).id;
      default:
        throw new Error(`no thing stands for the id of: ${line}`);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#dispose();
  }
}
