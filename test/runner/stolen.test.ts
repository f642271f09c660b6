import { join } from "node:path";
import { expect, it } from "vitest";
import { RULES } from "../../src/domain/call/access.ts";
import { ROUTES } from "../../src/http/app.ts";
import type { AnyRoute } from "../../src/http/route.ts";
import { buildFakeEnvironment } from "../harness/fakes/agents.ts";
import { type Client, openClient } from "../harness/service/client.ts";
import { createTempDir, startServer } from "../harness/service/process.ts";
import { createRemoteWorker, createTask, FakeRunner } from "../harness/service/runner.ts";
import { waitUntil } from "../harness/wait.ts";

// deno-lint-ignore no-explicit-any
type Json = any;

/** Secrets of the service that a test can choose: in its environment and configuration. */
const GIVEN = {
  password: "canary-password-5e1f0a",
  databaseToken: "canary-database-token-77aa",
  engineKey: "canary-engine-key-0123456789",
  passed: "canary-passed-token-0123456789",
  unrelated: "canary-somebody-elses-secret",
  platform: "4711:canary-platform-token-0123456789",
  hook: `whsec_${btoa("canary of a hook, of more than 24 bytes")}`,
};

/** Data of other workers and their conversations. */
const OTHERS = {
  memory: "canary-what-another-worker-knows",
  constraints: "canary-what-another-worker-must-not",
  description: "canary-what-another-worker-is",
  prompt: "canary-what-another-worker-was-asked",
  result: "canary-what-another-worker-said",
  entry: "canary-memory-of-another-conversation",
  file: "canary-file-of-another-conversation",
  away: "canary-what-a-worker-of-another-runner-was-asked",
  waiting: "canary-what-waits-for-another-runner",
};

const CONFIG = {
  platforms: {
    phone: { kind: "telegram", token: GIVEN.platform, base_url: "http://127.0.0.1:9" },
    shop: { kind: "webhook", worker: "Other", secret: GIVEN.hook },
  },
};

/** Collects all responses: status, headers and bodies, byte for byte. */
class Loot {
  text = "";
  readonly #url: string;

  constructor(url: string) {
    this.#url = url;
  }

  async take(
    method: string,
    path: string,
    init: RequestInit = {},
  ): Promise<{ status: number; body: string }> {
    // A forbidden operation must not be a stream either.
    const signal = AbortSignal.timeout(60_000);
    const response = await fetch(this.#url + path, { method, redirect: "manual", signal, ...init });
    const body = new TextDecoder("latin1").decode(await response.arrayBuffer());
    this.text += `${response.status} ${[...response.headers].flat().join("\n")}\n${body}\n`;
    return { status: response.status, body };
  }

  /** Finds which of these texts it contains. */
  found(texts: Record<string, string>): string[] {
    return Object.entries(texts).filter(([, text]) => this.text.includes(text)).map(([name]) => name);
  }
}

it(
  "the token of a stolen runner gets the runs of its labels, and nothing else of the service [RUN-2]",
  async () => {
    await using folder = await createTempDir();
    const dataDir = join(folder.path, "data");
    await Deno.mkdir(dataDir);
    await Deno.writeTextFile(join(dataDir, "config.yaml"), JSON.stringify(CONFIG), { mode: 0o600 });
    await using server = await startServer({ dataDir, env: environment() });
    // The agent continues until the service ends it, so that none is left.
    await using _ended = { [Symbol.asyncDispose]: () => server.end("SIGTERM").then(() => {}) };
    const api = await openClient(server.url, GIVEN.password);
    const { ids, stored, secrets, other, thiefToken } = await furnish(api, folder.path);
    const before = await snapshot(api);

    const loot = new Loot(server.url);
    const thief = { authorization: `Bearer ${thiefToken}`, "content-type": "application/json" };
    const open = await walk(loot, thief, { ids, stored });
    // An anonymous client may call these, and a runner its own operations.
    expect(open.filter((operation) => {
      const rule = RULES.get(operation);
      return rule?.access !== "public" && rule?.only !== "runners";
    })).toEqual([]);
    for (const [method, path] of [["GET", "/"], ["GET", "/metrics"], ["GET", "/readyz"], ["GET", "/docs"]]) {
      await loot.take(method ?? "", path ?? "", { headers: thief });
    }
    for (const method of ["tools/list", "resources/list", "prompts/list"]) {
      const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method });
      await loot.take("POST", "/mcp", { headers: { ...thief, accept: "application/json" }, body });
    }

    // The other runner still works and has its run.
    expect((await other.runner.beat(other.runs.slice(0, 1))).body.runs).toHaveLength(1);

    // Runs of other runners, under any claimed identity.
    const runs = ids.filter((id) => other.runs.includes(id));
    expect(runs).toHaveLength(2);
    for (const id of runs) {
      for (const epoch of [1, 2]) {
        for (const [path, body] of lies(id, epoch)) {
          const { status } = await loot.take("POST", path, { headers: thief, body });
          expect([path, status]).toEqual([path, 409]);
        }
      }
      const { status } = await loot.take("GET", `/api/runs/${id}/media/${stored}`, { headers: thief });
      expect(status).toBe(409);
    }
    const claim = (change: object) =>
      loot.take("POST", "/api/runners/claim", {
        headers: thief,
        body: JSON.stringify({ ...CLAIM, process: crypto.randomUUID(), place: other.place, ...change }),
      });
    for (const more of [{ labels: ["y"] }, { runs_on: ["y"] }, { name: "r2" }, { allow_admin: true }]) {
      expect((await claim(more)).status, JSON.stringify(more)).toBe(400);
    }
    for (const more of [{ request_id: other.request }, { engines: EVERY_ENGINE }]) {
      const process = crypto.randomUUID();
      const { status, body } = await claim({ process, ...more });
      const { run, epoch } = JSON.parse(body);
      expect([status, run], JSON.stringify(more)).toEqual([200, null]);
      const beat = JSON.stringify({ process, epoch, running: runs });
      const heard = await loot.take("POST", "/api/runners/beat", { headers: thief, body: beat });
      expect([heard.status, JSON.parse(heard.body)]).toEqual([200, { runs: [] }]);
    }
    expect(loot.found(secrets)).toEqual([]);
    expect(loot.found(OTHERS)).toEqual([]);

    // The runner gets the run of its labels with this token, and no more.
    const own = await createRemoteWorker(api, "echo", { memory: "of-my-own-worker" });
    await createTask(api, own, "of-my-own-task");
    const { body } = await claim({ wait_ms: 10_000, request_id: crypto.randomUUID(), engines: EVERY_ENGINE });
    const { run } = JSON.parse(body);
    expect(body).toContain("of-my-own-task");
    expect(body).toContain("of-my-own-worker");
    expect(loot.found(secrets)).toEqual([]);
    expect(loot.found(OTHERS)).toEqual([]);
    // The run's agent sees what agents may see (contract 2.6), and no secret of the service.
    const agent = { authorization: `Bearer ${run.token}`, "content-type": "application/json" };
    expect((await walk(loot, agent, { ids, stored, method: "GET" })).length).toBeGreaterThan(3);
    expect(loot.found(secrets)).toEqual([]);

    // All of this changed nothing, and the other runner keeps its run.
    expect(await snapshot(api)).toEqual({ ...before, workers: [...before.workers ?? [], own].sort() });
    expect((await other.runner.beat([other.runs[0] ?? ""])).body.runs).toHaveLength(1);
    expect((await other.runner.end(other.runs[0] ?? "", { text: "mine" })).status).toBe(200);
    expect((await api.call(`GET /api/executions/${other.runs[0]}`)).result).toBe("mine");
    expect(server.stderr).not.toContain("canary");
  },
  600_000,
);

function environment(): Record<string, string> {
  return {
    ...buildFakeEnvironment(),
    SVC_AUTH_PASSWORD: GIVEN.password,
    SVC_AUTH__PASSWORD_HASH: "",
    SVC_SHUTDOWN_GRACE: "0s",
    SVC_DATABASE__AUTH_TOKEN: GIVEN.databaseToken,
    SVC_ENGINES__FAKE__ENV__SOME_API_KEY: GIVEN.engineKey,
    SVC_ENGINES__FAKE__PASS_ENV: "GH_TOKEN",
    GH_TOKEN: GIVEN.passed,
    UNRELATED_SECRET: GIVEN.unrelated,
  };
}

const EVERY_ENGINE = ["echo", "fake", "claude"].map((name) => ({ name, agent: true }));

const CLAIM = {
  request_id: "01a1fd23-4a4c-746f-99ac-8860e2641168",
  epoch: 0,
  protocol: 1,
  version: "4.9.0",
  work_root: "/nowhere",
  max_runs: 1_000,
  engines: [],
  wait_ms: 0,
};

const NO_USAGE = { input_tokens: null, output_tokens: null, cost_usd: null };

/** Builds false reports about a run of another runner. */
function lies(id: string, epoch: number): [path: string, body: string][] {
  const outcome = {
    status: "completed",
    text: "stolen",
    failure: "",
    error: "",
    exitCode: 0,
    usage: NO_USAGE,
  };
  const rest = { sessionId: "", sessionUsage: NO_USAGE, reset: null };
  const end = { epoch, ran_ms: 5, interruption: null, outcome: { ...outcome, ...rest } };
  return [
    [`/api/runs/${id}/events`, JSON.stringify({ epoch, events: [{ no: 1, kind: "started" }] })],
    [`/api/runs/${id}/end`, JSON.stringify(end)],
  ];
}

/** Stores canary texts wherever the service keeps data. Returns every id, which a thief could guess at best. */
async function furnish(api: Client, folder: string) {
  const { memory, constraints, description, prompt, result, entry, file } = OTHERS;
  const worker = await api.call("POST /api/workers", { name: "Other", memory, constraints, description });
  const { id: session } = await api.call("POST /api/local/sessions", { name: prompt, worker_id: worker.id });
  const media = await upload(api, session, file);
  await api.call("PUT /api/memory/entry", { scope: `local:${session}`, key: entry, value: entry });
  await api.call(`POST /api/local/sessions/${session}/messages`, {
    content: `say ${result} ${prompt}`,
    media_path: media.path,
  });
  await waitUntil("it is said", async () => JSON.stringify(await replies(api, session)).includes(result));
  const tokenFile = join(folder, "run.token");
  await createTask(api, worker.id, `show-token-and-stay ${tokenFile}`);
  await waitUntil("it runs", async () => (await Deno.readTextFile(tokenFile).catch(() => "")) !== "");

  const user = await api.call("POST /api/users", {
    name: "grace",
    role: "admin",
    password: "canary-of-grace-0123",
  });
  const token = await api.call("POST /api/tokens", { name: "ci", scopes: ["*:*"] });
  const webhook = await api.call("POST /api/webhooks", {
    name: "ci",
    url: "https://127.0.0.1:9/",
    events: ["task.*"],
  });
  const { token: thiefToken } = await api.call("POST /api/runners", { name: "r1", labels: ["x"] });
  const { id: runnerId, token: otherToken } = await api.call("POST /api/runners", {
    name: "r2",
    labels: ["y"],
  });
  const runner = new FakeRunner(api, otherToken);
  const away = await createRemoteWorker(api, "echo", { runs_on: ["y"] });
  const { id: far } = await api.call("POST /api/local/sessions", { worker_id: away });
  const farMedia = await upload(api, far, file);
  await api.call(`POST /api/local/sessions/${far}/messages`, {
    content: OTHERS.away,
    media_path: farMedia.path,
  });
  const request = crypto.randomUUID();
  const { run } = (await runner.claim({ request_id: request })).body;
  expect(run.execution.instruction).toContain(OTHERS.away);
  const waiting = await createTask(api, away, OTHERS.waiting);

  const executions: Json[] = await api.call("GET /api/executions");
  const local = executions.find(({ status, worker_id }) => status === "running" && worker_id === worker.id);
  const found = JSON.stringify([await api.call("GET /api/workers"), executions, await replies(api, session)]);
  expect([memory, constraints, description, prompt, result].filter((text) => !found.includes(text))).toEqual(
    [],
  );
  return {
    ids: [
      ...[
        worker.id,
        away,
        session,
        far,
        user.id,
        token.id,
        webhook.id,
        runnerId,
        waiting,
        "r2",
        "ci",
        "shop",
        "phone",
      ],
      ...executions.flatMap(({ id, task_id, message_id }) => [id, task_id, message_id]),
    ].filter((id, index, all) => id !== "" && all.indexOf(id) === index),
    stored: farMedia.path.split("/").at(-1) as string,
    thiefToken: thiefToken as string,
    secrets: {
      ...GIVEN,
      key: (await Deno.readTextFile(join(folder, "data", "secret.key"))).trim(),
      login: api.token,
      refresh: api.refreshToken,
      user: "canary-of-grace-0123",
      token: token.token,
      webhook: webhook.secret,
      runner: otherToken,
      run: (await Deno.readTextFile(tokenFile)).trim(),
      farRun: run.token,
    } as Record<string, string>,
    other: {
      runner,
      request,
      place: runner.place,
      runs: [run.execution.execution_id as string, local?.id as string],
    },
  };
}

async function upload(api: Client, session: string, content: string): Promise<Json> {
  const form = new FormData();
  form.set("file", new File([content], "note.txt"));
  return await api.upload(`/api/local/sessions/${session}/media`, form);
}

function replies(api: Client, session: string): Promise<Json> {
  return api.call(`GET /api/local/sessions/${session}/messages`);
}

/** Lists all data by id and name: a thief may neither add nor remove any. */
async function snapshot(api: Client): Promise<Record<string, string[]>> {
  const shown: Record<string, string[]> = {};
  for (const noun of ["workers", "users", "tokens", "webhooks", "runners", "budgets", "departments"]) {
    const all: Json[] = await api.call(`GET /api/${noun}`);
    shown[noun] = all.map(({ id }) => id).sort();
  }
  return shown;
}

/** Calls every operation for each of `ids`. Returns the allowed ones. */
async function walk(
  loot: Loot,
  headers: Record<string, string>,
  { ids, stored, method: only = "" }: { ids: string[]; stored: string; method?: string },
): Promise<string[]> {
  const allowed = new Set<string>();
  const token = headers.authorization?.slice("Bearer ".length);
  for (const { method, path, responseType } of ROUTES as readonly AnyRoute[]) {
    // Long polls are not called.
    if (only !== "" && (method !== only || responseType === "text/event-stream" || /\/wait$/.test(path))) {
      continue;
    }
    const paths = path.includes(":")
      ? ids.map((id) =>
        path.replace(/media\/:name/, `media/${stored}`).replace(/:\w+/g, encodeURIComponent(id))
      )
      : [path];
    for (const each of paths) {
      const body = method === "GET" ? {} : { body: "{}" };
      const { status } = await loot.take(method, each, { headers, ...body });
      if (status < 300) allowed.add(`${method} ${path}`);
    }
    const [first = ""] = paths;
    const { status } = await loot.take(method, `${first}?token=${token}`);
    if (status < 300) allowed.add(`${method} ${path}`);
  }
  return [...allowed];
}
