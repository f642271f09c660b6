import { afterAll, beforeAll, expect, it } from "vitest";
import { Agent, type IncomingMessage, request as openRequest } from "node:http";
import { buildFakeEngines } from "../../harness/fakes/agents.ts";
import { Upstream } from "../../harness/fakes/upstream.ts";
import { type App, openApp } from "../../harness/service/app.ts";
import { type ActiveRun, startRun } from "../../harness/service/run.ts";
import { waitUntil } from "../../harness/wait.ts";

const STREAMS_AT_ONCE = 200;
const ENDS = 1_000;

let upstream: Upstream;
let app: App;

beforeAll(async () => {
  upstream = await Upstream.start();
  const settings = {
    kind: "http" as const,
    secret: "key",
    upstream: upstream.url,
    allow: ["GET /**", "POST /**"],
  };
  app = await openApp({
    inMemory: true,
    config: {
      engines: buildFakeEngines(),
      limits: { max_concurrent_runs: 20 },
      gateways: { api: { ...settings, header: "x-api-key: {secret}" } },
    },
  });
  await app.call("PUT /api/secrets/key", { value: "canary-0123456789" });
});

afterAll(async () => {
  await app[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
});

async function startGatewayRun(name: string): Promise<ActiveRun> {
  const run = await startRun(app, [], name);
  await app.call(`PUT /api/workers/${run.workerId}`, { gateways: ["api"] });
  return run;
}

const agent = new Agent({ keepAlive: true });

/** Opens an answer. Resolves with its headers. */
function open(run: ActiveRun, path = "/stream"): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const request = openRequest(`${app.url}/gateway/api${path}`, { agent, headers: run.headers }, resolve);
    request.on("error", reject);
    request.end();
  });
}

/** Resolves when an answer is cut off, and rejects when it ends in order. */
function untilCut(message: IncomingMessage): Promise<void> {
  return new Promise((resolve, reject) => {
    message.resume();
    message.on("end", () => reject(new Error("the answer ended in order")));
    message.on("error", () => resolve());
    message.on("close", () => resolve());
  });
}

function streamWithoutEnd(): void {
  upstream.answer = (_request, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write("data: 1\n\n");
  };
}

it(
  `${ENDS} streams, ${STREAMS_AT_ONCE} at a time: the end of their runs cuts them and frees everything [GTW-1]`,
  async () => {
    streamWithoutEnd();
    for (let round = 0; round < ENDS / STREAMS_AT_ONCE; round++) {
      const runs = await Promise.all(["A", "B"].map((name) => startGatewayRun(`${name}${round}`)));
      const answers = await Promise.all(
        Array.from({ length: STREAMS_AT_ONCE }, (_, index) => open(runs[index % 2] ?? fail())),
      );
      expect(answers.map(({ statusCode }) => statusCode)).toEqual(answers.map(() => 200));
      const cuts = answers.map(untilCut);
      for (const { executionId } of runs) await app.call(`POST /api/executions/${executionId}/cancel`);
      await Promise.all(cuts);
      for (const run of runs) expect((await open(run)).resume().statusCode).toBe(401);
    }
    await waitUntil("the upstream has no open answer", () => upstream.open.size === 0);
  },
  180_000,
);

it("a run that ended elsewhere loses its streams within a second [GTW-1]", async () => {
  streamWithoutEnd();
  const run = await startGatewayRun("Elsewhere");
  const cut = untilCut(await open(run));
  // Only the row says so.
  await app.db.write([{
    sql: "update execution set status = 'failed', completed_at = 1 where id = ?",
    args: [run.executionId],
  }]);
  const ended = performance.now();
  await cut;
  expect(performance.now() - ended).toBeLessThan(20_000);
  expect((await open(run)).resume().statusCode).toBe(401);
});

it("a client that does not read loses its stream with its run [GTW-1]", async () => {
  const piece = new Uint8Array(64 * 1024);
  upstream.answer = async (_request, response) => {
    let wake = () => {};
    response.on("drain", () => wake());
    response.once("close", () => wake());
    response.writeHead(200);
    while (!response.destroyed) {
      const drained = new Promise<void>((resolve) => wake = resolve);
      if (!response.write(piece) && !response.destroyed) await drained;
    }
  };
  const run = await startGatewayRun("Lazy");
  await open(run);
  await waitUntil("the answer has begun", () => upstream.open.size === 1);
  await app.call(`POST /api/executions/${run.executionId}/cancel`);
  await waitUntil("the upstream has no open answer", () => upstream.open.size === 0);
});

it("an upstream that breaks, is not there or breaks HTTP gives 502 or a cut answer [GTW-1]", async () => {
  const run = await startGatewayRun("Broken");
  upstream.answer = (_request, response) => void response.destroy();
  expect((await open(run)).resume().statusCode).toBe(502);
  upstream.answer = (_request, response) => {
    response.writeHead(200, { "content-length": "100" });
    response.write("x", () => response.destroy());
  };
  await untilCut(await open(run));
});

it("a body passes in both directions as it arrives", async () => {
  const run = await startGatewayRun("Echo");
  const arrived: string[] = [];
  upstream.answer = ({ body }, response) => {
    arrived.push(body);
    response.end(body);
  };
  const body = "x".repeat(3 * 1024 * 1024);
  const response = await fetch(`${app.url}/gateway/api/echo`, { method: "POST", headers: run.headers, body });
  expect((await response.text()).length).toBe(body.length);
  expect(arrived[0]?.length).toBe(body.length);
});

function fail(): never {
  throw new Error("there is no such run");
}
