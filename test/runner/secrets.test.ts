import { join } from "node:path";
import { expect, it } from "vitest";
import { type App, openApp } from "../harness/service/app.ts";
import { createRemoteWorker, createTask, startRunner, waitUntilOnline } from "../harness/service/runner.ts";
import { findText } from "../harness/model/found_text.ts";
import { waitUntil } from "../harness/wait.ts";

const CANARY = "ghp-canary-0123456789-runner";
const SHELL = `engines: ${
  JSON.stringify({ default: "sh", sh: { kind: "command", command: "bash", shell: ["bash", "-c"] } })
}\n`;
const ENV = { GITHUB: "secret:github", PLAIN: "text" };

/** Starts the runner r1, whose engine \`sh\` runs each instruction as a script. */
async function connect(app: App, more: object = { secrets: true }, config = SHELL) {
  const { token } = await app.call("POST /api/runners", { name: "r1", labels: ["x"], ...more });
  const runner = await startRunner({ token, url: app.url, root: join(app.dataDir, "r1"), config });
  await waitUntilOnline(app, "r1");
  return runner;
}

async function waitForEnd(app: App, worker: string) {
  const list = () => app.call(`GET /api/executions?worker_id=${worker}`);
  await waitUntil("the run ends", async () => ["completed", "failed"].includes((await list())[0]?.status));
  return (await list())[0];
}

it("a runner that was added with secrets gets a worker's secret for its run, masked in all that the run says, and written nowhere [KEY-1]", async () => {
  await using app = await openApp();
  await app.call("PUT /api/secrets/github", { value: CANARY });
  await using runner = await connect(app);
  const script =
    `printf '%s' "$GITHUB" | sha256sum | cut -c1-8; echo "$PLAIN $GITHUB"; "$SVC_CTL" ctl memory save --scope "$SVC_SESSION_KEY" --key note --value "it is $GITHUB"`;
  const verify = { command: ["sh", "-c", 'test -z "$GITHUB" && test "$PLAIN" = text'] };
  const worker = await createRemoteWorker(app, "sh", { env: ENV, verify });
  const { id } = await app.call("POST /api/local/sessions", { worker_id: worker });
  await app.call(`POST /api/local/sessions/${id}/messages`, { content: script });
  const { status, result, error } = await waitForEnd(app, worker);
  const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(CANARY)))
    .toHex();
  expect([status, error]).toEqual(["completed", ""]);
  expect(result).toContain(hash.slice(0, 8));
  expect(result).toContain(`text ${"*".repeat(CANARY.length)}`);
  expect(await app.db.readValue("select value from memory")).toBe(`it is ${"*".repeat(CANARY.length)}`);
  // The runner's directory is below the service's.
  expect(await findText(app.dataDir, CANARY)).toEqual([]);
  expect(runner.stderr).not.toContain(CANARY);
});

it("a run on a runner that gets no secrets waits, and starts when a runner with secrets is there", async () => {
  await using app = await openApp();
  await app.call("PUT /api/secrets/github", { value: CANARY });
  await using _runner = await connect(app, {});
  const worker = await createRemoteWorker(app, "sh", { env: ENV });
  const task = await createTask(app, worker, "echo done");
  await waitUntil("it waits", async () => (await app.call(`GET /api/tasks/${task}`)).reason !== "");
  expect((await app.call(`GET /api/tasks/${task}`)).reason).toContain("Add one with --secrets");
  const { token } = await app.call("POST /api/runners", { name: "r2", labels: ["x"], secrets: true });
  await using _other = await startRunner({
    token,
    url: app.url,
    root: join(app.dataDir, "r2"),
    config: SHELL,
  });
  expect(await waitForEnd(app, worker)).toMatchObject({ status: "completed", result: "done" });
});

it("a secret that the worker may not use fails its run on a runner with setup", async () => {
  await using app = await openApp();
  await app.call("PUT /api/secrets/github", { value: CANARY });
  await using _runner = await connect(app);
  const worker = await createRemoteWorker(app, "sh", { env: ENV });
  await app.call("PUT /api/secrets/github", { value: CANARY, workers: [] });
  await createTask(app, worker, "echo ran");
  expect(await waitForEnd(app, worker)).toMatchObject({
    ...{ status: "failed", failure: "setup", result: "" },
    error: expect.stringContaining("Cannot set GITHUB"),
  });
});

it("only who may change secrets adds a runner that gets them", async () => {
  await using app = await openApp();
  const { token } = await app.call("POST /api/tokens", { name: "ops", scopes: ["write:runners"] });
  const headers = { authorization: `Bearer ${token}` };
  const body = { name: "r1", secrets: true };
  const refused = await app.send("POST /api/runners", body, headers);
  expect([refused.status, refused.body.required_scope]).toEqual([403, "write:secrets"]);
  expect((await app.send("POST /api/runners", { name: "r1" }, headers)).status).toBe(201);
});

it("an engine of a runner reaches its model through the service's gateway, with the run's token and without a login [GTW-1]", async () => {
  const gateways = { model: { kind: "anthropic" as const, secret: "key", upstream: "http://127.0.0.1:9" } };
  const engines = { default: "echo", claude: { gateway: "model" } };
  await using app = await openApp({ config: { gateways, engines } });
  await app.call("PUT /api/secrets/key", { value: CANARY });
  const program = join(app.dataDir, "claude");
  const seen = join(app.dataDir, "seen");
  await Deno.writeTextFile(program, `#!/bin/sh\nenv > ${seen}\nexit 1\n`, { mode: 0o755 });
  const claude = { command: program, env: { HOME: app.dataDir } };
  await using _runner = await connect(app, {}, `engines: ${JSON.stringify({ default: "claude", claude })}\n`);
  const worker = await createRemoteWorker(app, "claude");
  await createTask(app, worker, "work");
  await waitForEnd(app, worker);
  const env = await Deno.readTextFile(seen);
  const token = /^SVC_TOKEN=(.*)$/m.exec(env)?.[1] ?? "";
  expect(token).not.toBe("");
  expect(env).toContain(`ANTHROPIC_BASE_URL=${app.url}/gateway/model\n`);
  expect(env).toContain(`ANTHROPIC_API_KEY=${token}\n`);
  expect(env).not.toContain(CANARY);
});

it("a runner gives a run the worker's MCP servers with their secrets, masks them, and writes them nowhere (contract 27)", async () => {
  await using app = await openApp();
  await app.call("PUT /api/secrets/github", { value: CANARY });
  const program = join(app.dataDir, "claude");
  const seen = join(app.dataDir, "seen");
  // A fake agent that starts the server of its settings.
  const script = `config=$(printf '%s\\n' "$@" | sed -n 's/^--mcp-config=//p')
server=$(sed 's/.*"command":"\\([^"]*mcp-files\\)".*/\\1/' "$config")
cp "$config" ${seen}.json; "$server" > ${seen}; cat ${seen} >&2; exit 1`;
  await Deno.writeTextFile(program, `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  const claude = { command: program, env: { HOME: app.dataDir, ANTHROPIC_API_KEY: "x" } };
  const config = `engines: ${JSON.stringify({ default: "claude", claude })}\n`;
  await using _runner = await connect(app, { secrets: true }, config);
  const mcp = {
    files: { command: ["sh", "-c", 'echo "$1 $KEY"', "sh", "a 'b'"], env: { KEY: "secret:github" } },
  };
  const worker = await createRemoteWorker(app, "claude", { mcp });
  await createTask(app, worker, "work");
  const { id, error } = await waitForEnd(app, worker);
  expect(await Deno.readTextFile(seen), error).toBe(`a 'b' ${CANARY}\n`);
  expect(await Deno.readTextFile(`${seen}.json`)).toContain("mcp-files");
  expect(await app.call(`GET /api/executions/${id}/logs`)).not.toContain(CANARY);
  await Deno.remove(seen);
  expect(await findText(app.dataDir, CANARY)).toEqual([]);
});
