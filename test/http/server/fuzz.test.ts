import { join } from "node:path";
import { expect, it } from "vitest";
import { buildFakeEngines } from "../../harness/fakes/agents.ts";
import { type App, openApp, PASSWORD } from "../../harness/service/app.ts";
import { findBreach } from "../../harness/model/contract.ts";
import { Fuzzer, type FuzzRequest } from "../../harness/model/fuzz.ts";
import { createTempDir } from "../../harness/service/process.ts";
import { startRun } from "../../harness/service/run.ts";
import { createRandom } from "../../harness/model/schedule.ts";
import { checkAtAnyMoment } from "../../torture/checker.ts";

// The long run: SVC_TEST_FUZZ=100000.
const REQUESTS = Number(Deno.env.get("SVC_TEST_FUZZ") ?? 1_000);
const SEED = Number(Deno.env.get("SVC_TEST_SEED") ?? Date.now() % 1_000_000);
const ANSWER_MAX_BYTES = 5_000_000;
const STREAM_MS = 50;

// Internal words that no response may contain.
const LEAK =
  /SQLITE|sqlite_|\bat [\w.<>]+ \(|\.ts:\d|\.js:\d|node_modules|\(os error|ENOENT|EACCES|file:\/\/|TypeError|RangeError|SyntaxError|ZodError|is not a function|undefined \(reading/;

/** A response, or the first bytes of a stream. */
interface Answer {
  status: number;
  headers: Headers;
  type: string;
  text: string;
  whole: boolean;
}

async function send(app: App, request: FuzzRequest): Promise<Answer> {
  const { method, headers, body } = request;
  const response = await app.server.fetch(
    new Request(new URL(request.url, "http://localhost"), {
      method,
      headers,
      ...(body === null ? {} : { body }),
    }),
  );
  const type = response.headers.get("content-type") ?? "";
  const answer = { status: response.status, headers: response.headers, type };
  const endless = /event-stream|tar/.test(type) || /follow=true/.test(request.url);
  if (!endless || response.status !== 200) return { ...answer, text: await response.text(), whole: true };
  const reader = response.body?.getReader();
  const late = new Promise<undefined>((resolve) => setTimeout(() => resolve(undefined), STREAM_MS));
  const first = await Promise.race([reader?.read(), late]);
  await reader?.cancel();
  return { ...answer, text: new TextDecoder().decode(first?.value), whole: false };
}

/** Describes the fault of a response. Returns "" if there is none. */
async function faultOf(request: FuzzRequest, answer: Answer, dataDir: string): Promise<string> {
  const { status, headers, type, text } = answer;
  const path = new URL(request.url, "http://localhost").pathname;
  if (status >= 500) return `${status}: ${text}`;
  if (headers.get("x-request-id") === null) return "no request id";
  if (text.length > ANSWER_MAX_BYTES) return `an answer of ${text.length} bytes`;
  let body: unknown = text;
  if (answer.whole && /json/.test(type) && request.method !== "HEAD") {
    try {
      body = JSON.parse(text);
    } catch {
      return `no JSON: ${text.slice(0, 200)}`;
    }
  }
  if (status >= 400 && request.method !== "HEAD") {
    if (type !== "application/problem+json") return `an error as ${type}: ${text.slice(0, 200)}`;
    const { detail, request_id } = body as { detail: string; request_id: string };
    if (typeof detail !== "string" || detail === "") return `an error without words: ${text}`;
    if (request_id !== headers.get("x-request-id")) return "another request id than in the header";
    const said = `${request.url} ${typeof request.body === "string" ? request.body : ""}`;
    if (LEAK.test(text)) return `not our words: ${text}`;
    // The directory is a field of a worker.
    const foreign = text.replaceAll(join(dataDir, "workers"), "");
    if (foreign.includes(dataDir) && !said.includes(dataDir)) return `a path that nobody named: ${text}`;
  }
  if (request.method === "HEAD" || request.method === "OPTIONS" || request.method === "PATCH") return "";
  if (!answer.whole) return status === 200 ? "" : `a stream with ${status}`;
  return await findBreach({
    method: request.method,
    path,
    requestBody: undefined,
    status,
    contentType: type,
    responseBody: body,
  });
}

it(
  `${REQUESTS} random requests to all routes: no 500, no internal words, only responses that /openapi.json describes (SVC_TEST_SEED=${SEED}) [BKP-6]`,
  async () => {
    await using folder = await createTempDir();
    const dataDir = join(folder.path, "data");
    await Deno.mkdir(dataDir, { mode: 0o700 });
    await using app = await openApp({
      dataDir,
      config: {
        engines: { ...buildFakeEngines(), default: "echo" },
        auth: { login_failures_per_minute: 10_000 },
        limits: { max_concurrent_runs: 20, max_upload_bytes: 10_000 },
      },
    });
    const run = await startRunOf(app, ["read:*", "write:*"]);
    const { access_token: login } = await app.call("POST /api/auth/login", {
      username: "admin",
      password: PASSWORD,
    });
    const operator = { headers: { authorization: `Bearer ${login}` } };
    const fuzzer = await Fuzzer.open({
      chance: createRandom(SEED),
      callers: [
        ...Array.from({ length: 12 }, () => operator),
        { headers: { authorization: `Bearer ${run.token}` } },
        { query: `token=${login}` },
        { headers: { authorization: "Bearer x" } },
        {},
      ],
      workDirs: [
        "",
        join(folder.path, "one"),
        join(folder.path, "two"),
        join(folder.path, "deep/er"),
        "/",
        dataDir,
        join(dataDir, "logs"),
      ],
    });
    fuzzer.learn(JSON.stringify([run, await app.call("GET /api/workers")]), "workers");
    expect(fuzzer.operations).toBeGreaterThan(50);
    const statuses = new Map<number, number>();
    const reached = new Set<string>();
    for (let i = 0; i < REQUESTS; i++) {
      const request = fuzzer.next();
      const answer = await send(app, request);
      const fault = await faultOf(request, answer, dataDir);
      expect([
        i,
        fault,
        fault === "" ? "" : JSON.stringify({ ...request, body: String(request.body).slice(0, 1_000) }),
      ]).toEqual([i, "", ""]);
      statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1);
      if (answer.status < 300) {
        reached.add(request.operation);
      }
      if (answer.whole && answer.status < 300) {
        fuzzer.learn(answer.text.slice(0, 20_000), /(\w+)(?:\/\{\w+\})?$/.exec(request.operation)?.[1]);
      }
      // A long run outlives the access token, which is valid for 15 minutes and for one key.
      const rotated = request.operation === "POST /api/system/rotate-key" && answer.status < 300;
      if (rotated || i % 5_000 === 4_999) {
        operator.headers.authorization = `Bearer ${
          (await app.call("POST /api/auth/login", { username: "admin", password: PASSWORD })).access_token
        }`;
      }
    }
    // Check that the requests reached most kinds of responses and many changes.
    for (const status of [200, 201, 400, 401, 404]) {
      expect([status, statuses.has(status)]).toEqual([status, true]);
    }
    const done = (statuses.get(200) ?? 0) + (statuses.get(201) ?? 0) + (statuses.get(202) ?? 0);
    expect(done).toBeGreaterThan(REQUESTS * 0.2);
    expect(reached.size).toBeGreaterThan(Math.min(40, REQUESTS / 100));
    if (REQUESTS > 2_000) {
      console.log(
        `seed ${SEED}: ${
          JSON.stringify(Object.fromEntries([...statuses].sort()))
        }, ${reached.size} of ${fuzzer.operations} operations done`,
      );
    }
    expect((await app.send("GET /readyz")).status).toBe(200);
    await app.stop();
    expect(await checkAtAnyMoment(dataDir)).toEqual([]);
  },
  180_000 + REQUESTS * 30,
);

/** Starts an agent's run that lasts as long as the test. */
async function startRunOf(app: App, scopes: string[]) {
  await app.call("POST /api/workers", { name: "Ada", description: "does things" });
  const stay = await app.call("POST /api/workers", { name: "Stay", engine: "fake", scopes });
  await app.call(`PUT /api/workers/${stay.id}`, { description: "stays" });
  return await startRun(app, scopes, "Agent", "fake");
}
