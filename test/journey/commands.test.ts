import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { GROUPS, loadGroup } from "../../cli/groups.ts";
import { fakeEngines } from "../harness/agents.ts";
import { type App, openApp } from "../harness/app.ts";
import { ctl } from "../harness/terminal.ts";

const FORMS = {
  terminal: { flags: [], terminal: true },
  pipe: { flags: [], terminal: false },
  json: { flags: ["--json"], terminal: false },
  ids: { flags: ["-q"], terminal: false },
} as const;
type Form = keyof typeof FORMS;

/** Uses commands one after the other in one output form, and checks what every answer must be like. */
class Script {
  readonly used = new Set<string>();
  readonly #app: App;
  readonly #form: Form;

  constructor(app: App, form: Form) {
    this.#app = app;
    this.#form = form;
  }

  /** Runs a command that succeeds; answers stdout. Words on stderr have to match `err`. */
  async run(command: string, args: string[] = [], err: RegExp = /^$/, stdin = ""): Promise<string> {
    this.used.add(command);
    const { flags, terminal } = FORMS[this.#form];
    const called = await ctl(this.#app, [...command.split(" "), ...args, ...flags], { terminal, stdin });
    expect([command, called.code, called.err]).toEqual([command, 0, expect.stringMatching(err)]);
    this.#checkForm(command, called.out);
    return called.out;
  }

  #checkForm(command: string, out: string): void {
    if (this.#form === "json" && command !== "execution logs") {
      for (const line of command === "config schema" ? [out] : out.trim().split("\n")) JSON.parse(line);
    }
    // deno-lint-ignore no-control-regex
    if (this.#form !== "terminal") expect([command, /\u001b/.test(out)]).toEqual([command, false]);
    if (out !== "") expect([command, out.endsWith("\n")]).toEqual([command, true]);
    if (this.#form === "ids" && !NO_IDS.has(command)) {
      expect([command, out]).toEqual([command, expect.stringMatching(/^[^\t]+\n$/)]);
    }
  }
}

const NO_IDS = new Set([
  "execution logs",
  "config schema",
  "config show",
  "config validate",
  "session list",
  "chat",
]);

async function walk(app: App, script: Script): Promise<void> {
  const worker = await app.call("POST /api/workers", { name: "Ada" });
  const session = await app.call("POST /api/local/sessions", { worker_id: worker.id });
  const { message_id: message } = await app.call(`POST /api/local/sessions/${session.id}/messages`, {
    content: "say hi",
  });
  await app.settle();
  const key = `local:${session.id}`;
  const [execution] = await app.call(`GET /api/executions?session_id=${session.id}`);

  await script.run("department create", ["-n", "Labs"]);
  await script.run("department create", ["-n", "Optics", "--parent", "labs", "--sort-order", "2"]);
  await script.run("department list");
  await script.run("department get", ["Labs"]);
  await script.run("department update", ["Optics", "--name", "Lasers", "--parent", ""]);
  await script.run("worker create", ["-n", "Bob", "--department", "Labs,Lasers", "--scopes", "read:tasks"]);
  await script.run("department delete", ["Lasers"]);
  await script.run("worker list");
  await script.run("worker get", [worker.id]);
  await script.run("worker status", [worker.id]);
  await script.run("worker update", [worker.id, "--description", "the first"]);
  await script.run("worker pause", [worker.id]);
  await script.run("worker resume", [worker.id]);

  const task = ["--message-id", "script", "--worker-id", worker.id, "--instruction", "say done"];
  await script.run("task create", [...task, "--type", "immediate", "--wait"]);
  const schedule = [...task, "--type", "scheduled", "--cron", "0 0 1 1 *"];
  const made = await app.call("POST /api/tasks", {
    message_id: "script",
    worker_id: worker.id,
    instruction: "say done",
    type: "scheduled",
    cron: "0 0 1 1 *",
  });
  await script.run("task create", schedule);
  await script.run("task list", ["--worker-id", worker.id, "--type", "immediate"]);
  await script.run("task get", [made.id]);
  const waiting = script.run("task wait", [made.id, "--timeout", "20s"]);
  await script.run("task run", [made.id]);
  await waiting;
  await script.run("task cancel", [made.id]);

  await script.run("execution list", ["--session-id", session.id]);
  await script.run("execution get", [execution.id]);
  await script.run("execution logs", [execution.id]);
  await script.run("execution cancel", [await startLong(app, worker.id)]);

  await script.run("memory save", ["--scope", key, "--key", "tone", "--value", "short"]);
  await script.run("memory get", ["--scope", key]);
  await script.run("memory get", ["--scope", key, "--key", "tone"]);
  await script.run("memory delete", ["--scope", key, "--key", "tone"]);

  await script.run("message send", ["--message-id", message, "--stdin"], /^$/, "One more\n");
  await script.run("message list", ["--session-key", key]);
  await script.run(
    "message list-outbound",
    ["--source-type", "system", "--page-size", "1"],
    /^$|use --page 2/,
  );
  await script.run("message trace", [message]).then((out) => expect(out).not.toBe(""));
  await script.run("events", ["--page-size", "1"]);

  await script.run("session list", ["--session-key", key]);
  await script.run("session clear-worker", ["--session-key", key, "--worker-id", worker.id]);
  await script.run("session clear", ["--session-key", key]);
  await script.run("chat", ["@Ada say bye", "--session", session.id], /^$|Ada/);
  await script.run("worker delete", [worker.id, "--delete-work-dir"]);

  await script.run("system overview");
  await script.run("system executions", ["--limit", "2"]);
  await script.run("system doctor");
  await script.run("system backup", [join(app.dataDir, "backup.tar")]);
  await script.run("system password", ["--stdin"], /^$/, "another secret\n");

  await script.run("config path", [], /no such file|^$/);
  await script.run("config show");
  await script.run("config validate");
  await script.run("config schema");
}

async function startLong(app: App, workerId: string): Promise<string> {
  const body = { message_id: "long", worker_id: workerId, instruction: "sleep 60", type: "immediate" };
  const { id } = await app.call("POST /api/tasks", body);
  while (true) {
    const task = await app.call(`GET /api/tasks/${id}`);
    if (task.execution_id !== null) return task.execution_id;
    await app.until("execution.started");
  }
}

describe("svc ctl, every command once (interface 4.2, contract 6)", () => {
  for (const form of Object.keys(FORMS) as Form[]) {
    it(`in the form for ${form}`, async () => {
      // Only a stored password can be changed.
      await using app = await openApp({ config: { engines: fakeEngines(), auth: { password_hash: "" } } });
      const script = new Script(app, form);
      await walk(app, script);
      expect([...script.used].sort()).toEqual((await everyCommand()).sort());
    }, 60_000);
  }
});

async function everyCommand(): Promise<string[]> {
  const all: string[] = [];
  for (const name of Object.keys(GROUPS)) {
    const group = await loadGroup(name);
    all.push(...(Array.isArray(group) ? group.map((spec) => `${name} ${spec.name}`) : [name]));
  }
  return all;
}
