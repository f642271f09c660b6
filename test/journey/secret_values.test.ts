import { Buffer } from "node:buffer";
import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { buildShellEngine } from "../harness/fakes/agents.ts";
import { type App, openApp } from "../harness/service/app.ts";
import { createSchedule } from "../harness/model/workload.ts";
import { createTempDir, svc } from "../harness/service/process.ts";

vi.setConfig({ testTimeout: 120_000 });

const CANARY = "canary:Sëcret/value+1 2";
const MULTI_LINE = "-----BEGIN KEY-----\ncanaryline0123456789\ncanaryline9876543210\n-----END KEY-----";
const SHORT = "short7!";

/** All texts that must appear nowhere: the values, and the forms in which the program prints them. */
const FORMS = [
  CANARY,
  Buffer.from(CANARY).toString("base64"),
  encodeURIComponent(CANARY),
  "canaryline0123456789",
  "canaryline9876543210",
];

/** Prints its secrets in all forms, slowly at one place, and sends them to the service. */
const LEAKY = `
printf 'whole %s\\n' "$API_KEY"
printf 'base64 %s\\n' "$(printf %s "$API_KEY" | base64 -w0)"
printf 'basic %s\\n' "$(printf 'user:%s' "$API_KEY" | base64 -w0)"
printf 'percent ${encodeURIComponent(CANARY).replaceAll("%", "%%")}\\n'
printf '%s\\n' "$PRIVATE"
printf 'slow canary:Sëc'; sleep 0.3; printf 'ret/value+1 2 end\\n'
printf 'plain %s\\n' "$PLAIN"
"$SVC_CTL" ctl memory save --scope "$SVC_SESSION_KEY" --key leak --value "memory $API_KEY" >/dev/null
"$SVC_CTL" ctl ask "question $API_KEY" --option yes --default yes --timeout 1m --wait 1s >/dev/null 2>&1
echo "error $API_KEY" >&2
`;

async function openLeaky(more: Record<string, unknown> = {}): Promise<{ app: App; worker: { id: string } }> {
  const engines = { default: "leaky", leaky: { ...buildShellEngine(LEAKY), shell: [] }, ...more };
  const app = await openApp({ config: { engines } });
  await app.call("PUT /api/secrets/api-key", { value: CANARY });
  await app.call("PUT /api/secrets/private", { value: MULTI_LINE });
  await app.call("PUT /api/secrets/short", { value: SHORT });
  const worker = await app.call("POST /api/workers", {
    name: "Ada",
    scopes: ["read:*", "write:memory", "write:questions"],
    env: {
      API_KEY: "secret:api-key",
      PRIVATE: "secret:private",
      SHORT: "secret:short",
      PLAIN: "text of the worker",
    },
    verify: { command: ["sh", "-c", 'env; echo "verify ${API_KEY-unset} ${SHORT-unset} $PLAIN"'] },
  });
  return { app, worker };
}

function listFiles(folder: string): string[] {
  return [...Deno.readDirSync(folder)].flatMap(({ name, isDirectory, isFile }) => {
    const path = join(folder, name);
    return isDirectory ? listFiles(path) : isFile ? [path] : [];
  });
}

async function run(app: App, workerId: string): Promise<Record<string, string>> {
  await app.call("POST /api/tasks", {
    message_id: crypto.randomUUID(),
    worker_id: workerId,
    instruction: "leak",
    type: "immediate",
  });
  await app.settle();
  const [execution] = await app.call("GET /api/executions");
  return execution;
}

describe("the value of a secret [KEY-1]", () => {
  it("reaches the run and no log, reply, question, memory, event, file, export or backup [KEY-1]", async () => {
    const { app, worker } = await openLeaky();
    await using _app = app;
    const execution = await run(app, worker.id);
    expect(execution).toMatchObject({ status: "completed" });
    const log: string = await app.call(`GET /api/executions/${execution.id}/logs`);
    expect(log).toContain("plain text of the worker");
    expect(log).toMatch(/whole \*+\n/);
    expect(log).toMatch(/slow \*+ end/);
    // A check gets the variables without the secrets.
    expect(log).toMatch(/verify unset unset text of the worker/);
    const reads = [
      "/api/executions",
      "/api/workers",
      "/api/secrets",
      "/api/memory?scope=global",
      "/api/inbox",
    ];
    reads.push("/api/questions", "/api/fleet", "/api/audit", "/api/system/doctor", "/api/usage", "/metrics");
    const answers = [log, execution.result ?? ""];
    reads.push(`/api/memory?scope=${encodeURIComponent(execution.session_key ?? "")}`);
    for (const path of reads) answers.push(JSON.stringify((await app.send(`GET ${path}`)).body));
    const events = await app.send("GET /api/events?page_size=100", undefined, { accept: "application/json" });
    answers.push(JSON.stringify(events.body));
    expect(answers.join("\n")).toContain("memory ***");
    expect(answers.join("\n")).toContain("question ***");
    for (const form of FORMS) expect(answers.join("\n"), form).not.toContain(form);
    const backup = await fetch(`${app.url}/api/system/backup`, {
      method: "POST",
      headers: { authorization: `Bearer ${await app.token()}`, "content-type": "application/json" },
      body: "{}",
    });
    const archive = Buffer.from(await backup.arrayBuffer()).toString("latin1");
    expect(archive.length).toBeGreaterThan(10_000);
    await app.db.checkpoint();
    const texts = [archive];
    for (const path of listFiles(app.dataDir)) {
      texts.push(Buffer.from(await Deno.readFile(path)).toString("latin1"));
    }
    for (const form of FORMS) {
      const bytes = Buffer.from(form).toString("latin1");
      expect(texts.filter((text) => text.includes(bytes)).length, form).toBe(0);
    }
  });

  it("reaches no gate of a schedule, which gets the other variables [KEY-1]", async () => {
    const { app, worker } = await openLeaky();
    await using _app = app;
    const print = 'echo "gate ${API_KEY-unset} ${SHORT-unset} ${PRIVATE-unset} $PLAIN"';
    const task = await createSchedule(app, worker.id, "leak", { gate: { command: ["sh", "-c", print] } });
    await app.call(`POST /api/tasks/${task}/run`, {});
    await app.until("execution.completed");
    const [{ instruction }] = await app.call("GET /api/executions");
    expect(instruction).toContain("gate unset unset unset text of the worker");
  });

  it("is needed at the run: a lost, missing or revoked secret fails the run with setup and the way out", async () => {
    const { app, worker } = await openLeaky();
    await using _app = app;
    await app.call("PUT /api/secrets/api-key", { workers: [] });
    expect(await run(app, worker.id)).toMatchObject({
      failure: "setup",
      error: expect.stringMatching(/API_KEY: this worker may not use its secret.*svc ctl secret grant/),
    });
    await app.call("PUT /api/secrets/api-key", { workers: [worker.id] });
    await app.db.write([{ sql: "update secret set key_id = 'another' where name = 'private'", args: [] }]);
    expect(await run(app, worker.id)).toMatchObject({
      failure: "setup",
      error: expect.stringMatching(/PRIVATE: another signing key/),
    });
    const inbox = await app.call("GET /api/inbox");
    expect(inbox).toContainEqual(expect.objectContaining({ kind: "secret_lost", title: "private" }));
    const { checks } = await app.call("GET /api/system/doctor");
    expect(checks).toContainEqual(expect.objectContaining({
      name: "secrets",
      status: "fail",
      detail: expect.stringContaining("private is lost"),
    }));
    await app.call("DELETE /api/secrets/private");
    expect(await run(app, worker.id)).toMatchObject({ failure: "setup" });
  });

  it("is lost with another signing key: the service starts and says so; with the old key it is back", async () => {
    const { app } = await openLeaky();
    await using _app = app;
    const { dataDir } = app;
    const key = join(dataDir, "secret.key");
    await app.stop();
    const old = await Deno.readTextFile(key);
    await Deno.writeTextFile(key, `${"another key of the service, long enough"}\n`);
    {
      await using other = await openApp({ dataDir });
      expect((await other.call("GET /api/secrets")).map(({ lost }: { lost: boolean }) => lost)).toEqual([
        ...[true, true, true],
      ]);
    }
    await Deno.writeTextFile(key, old);
    await using back = await openApp({ dataDir });
    expect(await back.server.parts.secrets.read("api-key")).toEqual({ state: "value", value: CANARY });
    await back.call("POST /api/system/rotate-key", {});
    expect(await back.server.parts.secrets.read("private")).toEqual({ state: "value", value: MULTI_LINE });
  });
});

describe("variables of a worker (contract-3 22)", () => {
  it("are refused where they are reserved, from callers without the scopes, and for secrets that are not granted", async () => {
    const { app, worker } = await openLeaky({ claude: {} });
    await using _app = app;
    const path = `PUT /api/workers/${worker.id}`;
    const names = [
      "SVC_TOKEN",
      "LD_PRELOAD",
      "BASH_ENV",
      "ENV",
      "NODE_OPTIONS",
      "GIT_DIR",
      "http_proxy",
      "PATH",
      "HOME",
    ];
    for (const name of [...names, "1X", "A-B"]) {
      expect([name, (await app.send(path, { env: { [name]: "canary-text" } })).status]).toEqual([name, 400]);
    }
    const adapter = await app.send(path, { engine: "claude", env: { CLAUDE_CONFIG_DIR: "/x" } });
    expect([adapter.status, adapter.body.detail]).toEqual([400, expect.stringContaining("adapter")]);
    await app.call("PUT /api/secrets/other", { value: CANARY });
    const ungranted = await app.send(path, { env: { OTHER: "secret:other" } });
    expect([ungranted.status, ungranted.body.detail]).toEqual([
      400,
      expect.stringContaining("secret grant other"),
    ]);
    expect((await app.send(path, { env: { OTHER: "secret:nowhere" } })).status).toBe(400);
    const many = Object.fromEntries(Array.from({ length: 61 }, (_, at) => [`V${at}`, "x"]));
    expect((await app.send(path, { env: many })).status).toBe(400);
    const { token } = await app.call("POST /api/tokens", {
      name: "few",
      scopes: ["read:workers", "write:workers"],
    });
    const few = { authorization: `Bearer ${token}` };
    expect((await app.send(path, { env: { PLAIN: "other" } }, few)).status).toBe(403);
    // The names of secrets are hidden, and sending back what GET returned changes nothing.
    const shown = await app.send(`GET /api/workers/${worker.id}`, undefined, few);
    expect(shown.body.env).toMatchObject({ API_KEY: "secret", PLAIN: "text of the worker" });
    expect((await app.send(path, shown.body, few)).status).toBe(200);
    const updated = await app.call(path, { env: { PLAIN: null, MORE: "x" } });
    expect(updated.env).toEqual({
      API_KEY: "secret:api-key",
      PRIVATE: "secret:private",
      SHORT: "secret:short",
      MORE: "x",
    });
  });

  it("travel in the fleet file with the name of the secret, and a new worker of a file gets its grant", async () => {
    const { app, worker } = await openLeaky();
    await using _app = app;
    const fleet = await app.call("GET /api/fleet");
    expect(fleet.workers[0].env).toMatchObject({ API_KEY: "secret:api-key" });
    await app.call(`DELETE /api/workers/${worker.id}`);
    await app.call("POST /api/fleet/apply", { fleet });
    expect((await app.call("GET /api/secrets/api-key")).workers).toHaveLength(1);
    fleet.workers[0].env = { PLAIN: "changed" };
    await app.call("POST /api/fleet/apply", { fleet });
    expect((await app.call("GET /api/workers"))[0].env).toEqual({ PLAIN: "changed" });
    fleet.workers[0].env = { PLAIN: "secret:nowhere" };
    expect((await app.send("POST /api/fleet/apply", { fleet })).status).toBe(400);
  });
});

it("svc ctl secret reads a value from a pipe and a file without its line break, and shows no value", async () => {
  await using app = await openApp();
  await using folder = await createTempDir();
  const file = join(folder.path, "value");
  await Deno.writeTextFile(file, `${CANARY}\r\n\n`);
  const env = { SVC_URL: app.url, SVC_TOKEN: await app.token() };
  const call = (...args: string[]) => svc(["ctl", "secret", ...args], { dataDir: app.dataDir, env });
  const set = await call("set", "api-key", "--file", file);
  expect([set.code, set.err]).toEqual([0, ""]);
  expect(await app.server.parts.secrets.read("api-key")).toEqual({ state: "value", value: CANARY });
  await app.call("POST /api/workers", { name: "Ada" });
  expect((await call("grant", "api-key", "--worker", "Ada")).code).toBe(0);
  expect((await app.call("GET /api/secrets/api-key")).workers).toHaveLength(1);
  const list = await call("list");
  expect([list.code, list.out.includes("api-key")]).toEqual([0, true]);
  expect((await call("revoke", "api-key", "--worker", "Ada")).code).toBe(0);
  expect((await app.call("GET /api/secrets/api-key")).workers).toEqual([]);
  expect((await call("delete", "api-key")).code).toBe(0);
  expect([set.out, list.out].join()).not.toContain(CANARY);
});
