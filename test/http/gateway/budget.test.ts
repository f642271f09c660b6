import { afterEach, beforeEach, expect, it } from "vitest";
import { buildFakeEngines } from "../../harness/fakes/agents.ts";
import { buildMessageEvents, formatEvents, Upstream } from "../../harness/fakes/upstream.ts";
import { type App, openApp } from "../../harness/service/app.ts";
import { type ActiveRun, startRun } from "../../harness/service/run.ts";
import { waitUntil } from "../../harness/wait.ts";

let upstream: Upstream;
let app: App;
let run: ActiveRun;

beforeEach(async () => {
  upstream = await Upstream.start();
  app = await openApp({
    config: {
      engines: buildFakeEngines(),
      gateways: { anthropic: { kind: "anthropic", secret: "key", upstream: upstream.url } },
    },
  });
  await app.call("PUT /api/secrets/key", { value: "sk-canary-0123456789" });
  run = await startRun(app);
  await app.call(`PUT /api/workers/${run.workerId}`, { gateways: ["anthropic"] });
});

afterEach(async () => {
  await app[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
});

function ask(): Promise<Response> {
  return fetch(`${app.url}/gateway/anthropic/v1/messages`, {
    method: "POST",
    headers: { "x-api-key": run.token },
    body: '{"stream":true}',
  });
}

function answerWithUsage(input: number, output: number): void {
  upstream.answer = (_request, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.end(formatEvents(...buildMessageEvents(input, output)));
  };
}

it("a budget that stops refuses the next request and ends the run; the sums equal a recount [GTW-2]", async () => {
  await app.call("POST /api/budgets", {
    name: "T",
    unit: "tokens",
    limit: 100,
    period: "24h",
    action: "stop",
  });
  answerWithUsage(40, 20);
  expect(await (await ask()).text()).toContain("message_stop");
  answerWithUsage(30, 25);
  expect(await (await ask()).text()).toContain("message_stop");
  const refused = await ask();
  // The budget stage may have ended the run before the request arrived.
  if (refused.status !== 401) {
    expect(await refused.json()).toMatchObject({
      status: 429,
      code: "budget",
      detail: /"T" is used up: 115 of 100/,
    });
    expect(refused.headers.get("x-should-retry")).toBe("false");
  }
  await app.until("execution.failed");
  expect(upstream.received.length).toBe(2);
  const execution = await app.call(`GET /api/executions/${run.executionId}`);
  expect(execution).toMatchObject({ failure: "budget", usage: { input_tokens: 70, output_tokens: 45 } });
  const ledger = await app.db.read("select target, tokens from ledger where target in ('global', ?)", [
    `worker:${run.workerId}`,
  ]);
  expect(ledger.map(({ tokens }) => tokens)).toEqual([115, 115]);
  expect((await app.call("GET /api/budgets"))[0]).toMatchObject({ used: 115, reserved: 0, state: "hard" });
});

it("the end of a run counts the answers that it cuts off [GTW-2]", async () => {
  const start = formatEvents(...buildMessageEvents(40, 20).slice(0, 2));
  upstream.answer = (_request, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(start);
  };
  const answers = await Promise.all([ask(), ask(), ask()]);
  const readers = answers.map((answer) => answer.body?.getReader());
  for (const reader of readers) expect((await reader?.read())?.value?.length).toBe(start.length);
  const ended = performance.now();
  await app.call(`POST /api/executions/${run.executionId}/cancel`);
  await Promise.all(readers.map((reader) => expect(reader?.read()).rejects.toThrow()));
  await app.until("execution.failed");
  expect((await ask()).status).toBe(401);
  expect(performance.now() - ended).toBeLessThan(30_000);
  const { usage } = await app.call(`GET /api/executions/${run.executionId}`);
  expect(usage).toMatchObject({ input_tokens: 120, output_tokens: 3 * Math.ceil(start.length / 4) });
  const [row] = await app.db.read("select tokens from ledger where target = 'global'");
  expect(row?.tokens).toBe(usage.input_tokens + usage.output_tokens);
});

it("the end of a run counts a request whose answer has not begun [GTW-2]", async () => {
  upstream.answer = () => {};
  const asked = ask().catch(() => null);
  await waitUntil("the request has arrived", () => upstream.received.length === 1);
  await app.call(`POST /api/executions/${run.executionId}/cancel`);
  await asked;
  await app.until("execution.failed");
  const { usage } = await app.call(`GET /api/executions/${run.executionId}`);
  expect(usage).toMatchObject({ input_tokens: Math.ceil('{"stream":true}'.length / 4), output_tokens: 0 });
});
