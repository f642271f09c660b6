import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { ROUTES } from "../../src/http/app.ts";
import type { AnyRoute } from "../../src/http/route.ts";
import { buildFakeEnvironment } from "../harness/fakes/agents.ts";
import { World } from "../harness/model/scenario.ts";
import { openClient } from "../harness/service/client.ts";
import { createTempDir, type ServerProcess, startServer, SVC, svc } from "../harness/service/process.ts";
import { waitUntil } from "../harness/wait.ts";
import { createTask } from "../harness/service/runner.ts";

vi.setConfig({ testTimeout: 180_000 });

const CANARY = {
  password: "canary-password-5e1f0a",
  key: "canary-signing-key-0123456789abcdef0123456789",
  databaseToken: "canary-database-token-77aa",
  engineKey: "canary-engine-key-0123456789",
  passed: "canary-passed-token-0123456789",
  other: "canary-somebody-elses-secret",
};

const decoder = new TextDecoder("latin1");

/** Lists every file below a folder that contains one of the texts, except the allowed ones. */
async function findFiles(folder: string, texts: string[]): Promise<string[]> {
  const found: string[] = [];
  for await (const entry of Deno.readDir(folder)) {
    const path = join(folder, entry.name);
    if (entry.isDirectory) found.push(...await findFiles(path, texts));
    if (!entry.isFile || entry.name === "secret.key") continue;
    const content = decoder.decode(await Deno.readFile(path));
    for (const text of texts) if (content.includes(text)) found.push(`${path}: ${text.slice(0, 12)}…`);
  }
  return found;
}

/** Lists every process that shows one of the texts in its arguments. */
async function findArguments(texts: string[]): Promise<string[]> {
  const found: string[] = [];
  for (const { name } of Deno.readDirSync("/proc")) {
    const line = /^\d+$/.test(name) ? await Deno.readTextFile(`/proc/${name}/cmdline`).catch(() => "") : "";
    for (const text of texts) if (line.includes(text)) found.push(`${name}: ${line.replaceAll("\0", " ")}`);
  }
  return found;
}

/** Collects the responses: status, headers and bodies. */
class Sink {
  text = "";

  async fetch(url: string, init: RequestInit = {}): Promise<number> {
    const abort = new AbortController();
    const response = await fetch(url, { ...init, redirect: "manual", signal: abort.signal });
    this.text += `${response.url === url ? "" : response.url}\n${
      [...response.headers].map((pair) => pair.join(": ")).join("\n")
    }\n`;
    if (/event-stream/.test(response.headers.get("content-type") ?? "")) {
      const reader = response.body?.getReader();
      this.text += decoder.decode((await reader?.read())?.value);
      abort.abort();
      await reader?.cancel().catch(() => {});
    } else this.text += await response.text();
    return response.status;
  }
}

// The long run: SVC_TEST_FORMATS=json,pretty.
const FORMATS = (Deno.env.get("SVC_TEST_FORMATS") ?? "json").split(",");

describe.each(FORMATS)("secrets, logged as %s (I9) [SEC-1, SEC-2, SEC-3]", (format) => {
  it("a token in the query of any route, with any response, reaches no log, file, header, body or metric [SEC-1]", async () => {
    await using world = await World.open({
      env: { SVC_AUTH_PASSWORD: "pass", SVC_LOG__LEVEL: "debug", SVC_LOG__FORMAT: format },
    });
    const { dataDir } = world;
    const { server, api } = await world.start("accept.pre-commit:1:throw");
    const sink = new Sink();
    const bad = "canary-bad-token-1234567890";
    const json = { "content-type": "application/json" };
    const statuses = new Set<number>();
    for (const token of [api.token, bad, `${api.token}x`]) {
      const add = async (method: string, path: string, init: RequestInit = {}) => {
        const query = `${path.includes("?") ? "&" : "?"}token=${token}`;
        const referer = `${server.url}${path}${query}`;
        statuses.add(
          await sink.fetch(server.url + path + query, {
            method,
            ...init,
            headers: { ...json, referer, ...init.headers },
          }),
        );
      };
      // The first creation hits the fault point: 500.
      await add("POST", "/api/workers", { body: '{"name":"x"}' });
      for (const { method, path, operation } of ROUTES as readonly AnyRoute[]) {
        // A new key would end the login of this test.
        if (operation === "system.backup" || operation === "system.rotate_key") continue;
        const url = path.replace(/:\w+/g, "01a1fd23-4a4c-746f-99ac-8860e2641168");
        await add(method, url, method === "GET" ? {} : { body: "{}" });
      }
      await add("GET", "/api/nothing");
      // Every text that looks like a token is masked everywhere.
      if (token !== bad) await add("GET", `/api/workers/${token}`);
      await add("PATCH", "/api/workers");
      await add("POST", "/api/workers", { body: `{"name":"${"x".repeat(1_100_000)}"}` });
      await add("POST", "/api/workers", { body: "x", headers: { "content-type": "text/plain" } });
      await add("GET", "/api/workers?page_size=1");
      await add("GET", "/api/workers?surely_not=1");
      await add("GET", "/api/workers", { headers: { authorization: `Bearer ${token}` } });
      await add("GET", "/metrics", { headers: { "x-forwarded-for": "1.2.3.4" } });
      for (const open of ["/livez", "/readyz", "/openapi.json", "/docs", "/mcp", "/"]) {
        await add("GET", open);
      }
      await add("POST", "/api/auth/login", { body: JSON.stringify({ username: token, password: token }) });
      await add("POST", "/api/auth/refresh", { body: JSON.stringify({ refresh_token: token }) });
    }
    expect([...statuses].sort()).toEqual(
      expect.arrayContaining([200, 201, 400, 401, 404, 405, 413, 415, 500]),
    );
    await sink.fetch(`${server.url}/metrics`);
    const events = await fetch(`${server.url}/api/events?page_size=100`, {
      headers: { authorization: `Bearer ${api.token}`, accept: "application/json" },
    });
    sink.text += await events.text();
    await server.end("SIGTERM");
    const signature = api.token.split(".")[2] ?? "";
    for (const secret of [signature, bad]) {
      expect(findLines(server.stderr, secret)).toEqual([]);
      // A request for a worker with a token as its id is 404 and repeats the token.
      const told = findLines(sink.text, secret).filter((line) => !line.includes("no such worker"));
      expect(told).toEqual([]);
    }
    expect(server.stderr.length).toBeGreaterThan(10_000);
    expect(await findFiles(dataDir, [signature, bad])).toEqual([]);
    expect(sink.text).toMatch(/referrer-policy: no-referrer/);
  });

  it("passwords, keys and tokens are only in their allowed files, whatever an agent prints [SEC-2]", async () => {
    const options = {
      SVC_AUTH_PASSWORD: CANARY.password,
      SVC_AUTH__PASSWORD_HASH: "",
      SVC_AUTH__JWT_SECRET: CANARY.key,
      SVC_DATABASE__AUTH_TOKEN: CANARY.databaseToken,
      SVC_ENGINES__FAKE__ENV__SOME_API_KEY: CANARY.engineKey,
      SVC_ENGINES__FAKE__PASS_ENV: "GH_TOKEN",
      GH_TOKEN: CANARY.passed,
      UNRELATED_SECRET: CANARY.other,
      SVC_SHUTDOWN_GRACE: "0s",
      SVC_LOG__LEVEL: "debug",
      SVC_LOG__FORMAT: format,
    };
    await using world = await World.serve({ env: options, password: CANARY.password });
    const { server, api, dataDir, env } = world;
    await fetch(`${server.url}/api/auth/login`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ username: "admin", password: `${CANARY.password}x` }),
    }).then((response) => response.text());
    await api.call("POST /api/auth/refresh", { refresh_token: api.refreshToken });
    const tokens: string[] = [];
    for (const mode of ["env-dump", "env-dump-stderr", "fd-dump", "show-token-and-stay"]) {
      const worker = await api.call("POST /api/workers", { name: "Ada" });
      const session = await api.call("POST /api/local/sessions", { worker_id: worker.id });
      const file = world.path("token");
      await api.call(`POST /api/local/sessions/${session.id}/messages`, { content: `${mode} ${file}` });
      if (mode !== "show-token-and-stay") continue;
      await waitUntil(
        "the run has started",
        async () => (await Deno.readTextFile(file).catch(() => "")) !== "",
      );
      tokens.push((await Deno.readTextFile(file)).trim());
      await Deno.remove(file);
    }
    await waitUntil(
      "the others are done",
      async () => (await api.call("GET /api/system/overview")).tasks.completed === 3,
    );
    const secrets = [
      ...Object.values(CANARY),
      api.token.split(".")[2] ?? "",
      api.refreshToken,
      tokens[0]?.split(".")[2] ?? "",
    ];
    expect(secrets.every((secret) => secret.length > 10)).toBe(true);
    expect(await findArguments(secrets)).toEqual([]);
    const environments = await readAgentEnvironments(dataDir);
    expect(environments).toContain(CANARY.engineKey);
    for (const hidden of [CANARY.password, CANARY.key, CANARY.databaseToken, CANARY.other]) {
      expect(environments).not.toContain(hidden);
    }

    const backup = world.path("backup.tar");
    const login = { SVC_URL: server.url, SVC_TOKEN: api.token };
    const made = await svc(["ctl", "system", "backup", backup], { dataDir, env: login });
    expect([made.code, made.err]).toEqual([0, expect.any(String)]);
    const doctor = await svc(["ctl", "system", "doctor"], { dataDir, env: login });
    const shown = await svc(["ctl", "config", "show"], { dataDir, env });
    const answers = JSON.stringify([
      await api.call("GET /api/executions"),
      await api.call("GET /api/messages/outbound"),
      await api.call("GET /api/workers"),
      await api.call("GET /api/system/overview"),
      await api.text("/metrics"),
      doctor,
      shown,
    ]);
    const runs: { id: string }[] = await api.call("GET /api/executions");
    for (const run of runs) expect(await api.text(`/api/executions/${run.id}/logs`)).toMatch(/starts in/);
    await server.end("SIGTERM");
    for (const secret of secrets) {
      expect(findLines(server.stderr, secret)).toEqual([]);
      expect(findLines(answers, secret)).toEqual([]);
      expect(findLines(decoder.decode(await Deno.readFile(backup)), secret)).toEqual([]);
    }
    // The run in progress had its environment in its own files until now.
    expect(await findFiles(dataDir, secrets)).toEqual([]);
  });

  it("control characters from outside forge no line and control no terminal [SEC-5]", async () => {
    await using world = await World.serve({ env: { SVC_LOG__LEVEL: "debug", SVC_LOG__FORMAT: format } });
    const { server, api } = world;
    const evil = [
      "\r\n",
      "\n",
      "\r",
      "\u001b[2J\u001b[31m",
      "\u001b]0;title\u0007",
      "\u0000",
      "\u0008\u0008",
      "\u007f",
      "\u009b31m",
      "\u2028",
      "\u2029",
      "\u0085",
    ];
    for (const [index, characters] of evil.entries()) {
      const text = `a${characters}FORGED-${index} ready at http://evil.example`;
      await api.send(`GET /api/${encodeURIComponent(text)}`);
      await api.send(`GET /api/workers/${encodeURIComponent(text)}`);
      await api.send(`GET /api/departments/${encodeURIComponent(text)}`);
      await api.send(`GET /api/workers?name=${encodeURIComponent(text)}`);
      if (index % 4 === 0) {
        await api.send("POST /api/auth/login", { username: text, password: text });
        const scopes = ["fly:moon"];
        const { id } = await api.call("POST /api/workers", {
          name: "w",
          description: text.replaceAll("\0", ""),
          scopes,
        });
        const instruction = `exit 3 ${text.replaceAll("\0", "")}`;
        await createTask(api, id, instruction);
      }
      await sendRawRequest(
        server,
        `GET /${index} HTTP/1.1\r\nhost: 127.0.0.1\r\nx-request-id: a\u001b[31mFORGED\r\nconnection: close\r\n\r\n`,
      );
    }
    await waitUntil("the runs have ended", async () => {
      const { tasks } = await api.call("GET /api/system/overview");
      return tasks.pending + tasks.running === 0;
    });
    await server.end("SIGTERM");
    const lines = server.stderr.trimEnd().split("\n");
    expect(lines.filter((line) => line.includes("FORGED")).length).toBeGreaterThan(5);
    // deno-lint-ignore no-control-regex
    expect(lines.filter((line) => /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028\u2029]/.test(line)))
      .toEqual([]);
    expect(lines.filter((line) => /^\W*FORGED/.test(line))).toEqual([]);
    if (format === "json") {
      for (const line of lines) expect(JSON.parse(line)).toMatchObject({ level: expect.any(String) });
    }
  });
});

function findLines(text: string, secret: string): string[] {
  return text.split("\n").filter((line) => line.includes(secret)).map((line) => line.slice(0, 300));
}

/** Reads the environments of this server's running agents. */
async function readAgentEnvironments(dataDir: string): Promise<string> {
  let text = "";
  for (const { name } of Deno.readDirSync("/proc")) {
    const environment = /^\d+$/.test(name)
      ? await Deno.readTextFile(`/proc/${name}/environ`).catch(() => "")
      : "";
    if (environment.includes("SVC_RUN_ID=") && environment.includes(dataDir)) text += environment;
  }
  return text;
}

async function sendRawRequest(server: ServerProcess, text: string): Promise<void> {
  const { hostname, port } = new URL(server.url);
  const connection = await Deno.connect({ hostname, port: Number(port) });
  await connection.write(new TextEncoder().encode(text));
  const buffer = new Uint8Array(4_096);
  while (await connection.read(buffer).catch(() => null) !== null);
  connection.close();
}

it("all files of the service are private to its user under any umask [SEC-7]", async () => {
  await using folder = await createTempDir();
  const dataDir = join(folder.path, "data");
  await Deno.mkdir(dataDir, { mode: 0o700 });
  const program = ["/bin/sh", "-c", 'umask 000; exec "$@"', "sh", ...SVC];
  await using server = await startServer({
    dataDir: join(dataDir, "svc"),
    env: buildFakeEnvironment(),
    program,
    cwd: dataDir,
  });
  const root = join(dataDir, "svc");
  const api = await openClient(server.url);
  const worker = await api.call("POST /api/workers", { name: "Ada" });
  const session = await api.call("POST /api/local/sessions", { worker_id: worker.id });
  const form = new FormData();
  form.set("file", new File(["x"], "x.txt"));
  const file = await api.upload(`/api/local/sessions/${session.id}/media`, form);
  await api.call(`POST /api/local/sessions/${session.id}/messages`, {
    content: "touch made-by-the-agent",
    media_path: file.path,
  });
  await waitUntil(
    "the first task is completed",
    async () => (await api.call("GET /api/system/overview")).tasks.completed === 1,
  );
  const going = await api.call("POST /api/local/sessions", { worker_id: worker.id });
  await api.call(`POST /api/local/sessions/${going.id}/messages`, { content: "sleep 60" });
  await waitUntil(
    "the second run has started",
    async () => (await api.call("GET /api/executions?status=running")).length === 1,
  );
  const backup = join(dataDir, "backup.tar");
  const env = { SVC_URL: server.url, SVC_TOKEN: api.token };
  const made = await svc(["ctl", "system", "backup", backup], { dataDir: root, env, program });
  expect([made.code, made.err]).toEqual([0, expect.any(String)]);
  const modes: string[] = [];
  const walk = async (path: string) => {
    const { mode, isDirectory } = await Deno.lstat(path);
    modes.push(
      `${isDirectory ? "d" : "f"} ${((mode ?? 0) & 0o777).toString(8)} ${path.slice(dataDir.length)}`,
    );
    if (isDirectory) {
      for await (const entry of Deno.readDir(path)) {
        await walk(join(path, entry.name));
      }
    }
  };
  await walk(root);
  await walk(backup);
  const own = join(worker.work_dir, "made-by-the-agent").slice(dataDir.length);
  // An agent's files follow the umask of the service, in a directory that only its user can enter.
  expect(modes).toContain(`f 666 ${own}`);
  // The user of a box may run svc, in a data directory that only the service's user can enter.
  const wrong = modes.filter((line) =>
    !/^(d 700|f 600) /.test(line) && !line.endsWith(own) &&
    !/^(d 755 \/svc\/bin|f 755 \/svc\/bin\/svc)$/.test(line)
  );
  expect(wrong).toEqual([]);
  expect(modes.length).toBeGreaterThan(20);
});
