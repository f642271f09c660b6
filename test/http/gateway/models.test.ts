import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { buildFakeEngines } from "../../harness/fakes/agents.ts";
import { buildMessageEvents, formatEvents, Upstream } from "../../harness/fakes/upstream.ts";
import { type App, openApp } from "../../harness/service/app.ts";
import { type ActiveRun, startRun } from "../../harness/service/run.ts";

let upstream: Upstream;
let app: App;
let run: ActiveRun;

beforeAll(async () => {
  upstream = await Upstream.start();
  const settings = { secret: "key", upstream: upstream.url };
  app = await openApp({
    config: {
      engines: buildFakeEngines(),
      gateways: {
        anthropic: { kind: "anthropic", ...settings },
        openai: { kind: "openai", ...settings, allow: ["GET /v1/responses/*", "DELETE /v1/responses/*"] },
      },
    },
  });
  await app.call("PUT /api/secrets/key", { value: "sk-canary-0123456789" });
});

beforeEach(async () => {
  upstream.received.length = 0;
  run = await startRun(app);
  await app.call(`PUT /api/workers/${run.workerId}`, { gateways: ["anthropic", "openai"] });
  return async () => {
    await app.send(`POST /api/executions/${run.executionId}/cancel`);
  };
});

afterAll(async () => {
  await app[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
});

async function post(path: string, body: object | string, headers: Record<string, string> = {}) {
  const response = await fetch(`${app.url}/gateway/${path}`, {
    method: "POST",
    headers: { "x-api-key": run.token, "content-type": "application/json", ...headers },
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
  return { status: response.status, headers: response.headers, text: await response.text() };
}

/** Answers with this body from now on. */
function answerWith(body: string, type = "application/json", status = 200): void {
  upstream.answer = (_request, response) =>
    void response.writeHead(status, { "content-type": type }).end(body);
}

function answerWithEvents(...events: (object | string)[]): string {
  const body = formatEvents(...events);
  answerWith(body, "text/event-stream; charset=utf-8");
  return body;
}

async function readUse() {
  const rows = await app.db.read(
    "select gateway, requests, refused, answers, estimated, input_tokens, output_tokens from gateway_use where execution_id = ?",
    [run.executionId],
  );
  return rows[0];
}

describe("a gateway of Anthropic", () => {
  it("adds the key and passes a message byte for byte", async () => {
    const text = '{ "model":"m",  "max_tokens": 1.0, "big": 12345678901234567890, "stream":true}';
    const body = answerWithEvents(...buildMessageEvents(25, 40));
    const answer = await post("anthropic/v1/messages?beta=true", text, {
      "anthropic-version": "2023-06-01",
      // Another key would go along with the gateway's own.
      authorization: `Bearer ${run.token}`,
    });
    expect(answer).toMatchObject({ status: 200, text: body });
    expect(upstream.received).toMatchObject([{
      url: "/v1/messages?beta=true",
      body: text,
      headers: {
        "x-api-key": "sk-canary-0123456789",
        "anthropic-version": "2023-06-01",
        "accept-encoding": "identity",
      },
    }]);
    expect(upstream.received[0]?.headers.authorization).toBeUndefined();
  });

  it("counts a stream, cached input included", async () => {
    const events = buildMessageEvents(25, 40) as { message?: { usage: Record<string, number> } }[];
    Object.assign(events[0]?.message?.usage ?? {}, {
      cache_creation_input_tokens: 3,
      cache_read_input_tokens: 4,
    });
    answerWithEvents(...events);
    await post("anthropic/v1/messages", { stream: true });
    expect(await readUse()).toMatchObject({ answers: 1, estimated: 0, input_tokens: 32, output_tokens: 40 });
  });

  it("counts an answer in one piece, and no token count", async () => {
    answerWith(JSON.stringify({ content: [], usage: { input_tokens: 7, output_tokens: 9 } }));
    expect(JSON.parse((await post("anthropic/v1/messages", {})).text).usage.output_tokens).toBe(9);
    answerWith(JSON.stringify({ input_tokens: 1_000 }));
    await post("anthropic/v1/messages/count_tokens", {});
    expect(await readUse()).toMatchObject({ answers: 1, input_tokens: 7, output_tokens: 9 });
  });

  it("counts an answer without usage by its size, and marks it", async () => {
    const body = answerWithEvents({ type: "content_block_delta", delta: { text: "x".repeat(400) } });
    const request = JSON.stringify({ messages: ["y".repeat(100)] });
    await post("anthropic/v1/messages", request);
    expect(await readUse()).toMatchObject({
      answers: 1,
      estimated: 1,
      input_tokens: Math.ceil(request.length / 4),
      output_tokens: Math.ceil(body.length / 4),
    });
  });

  it("counts what arrived of an answer that is cut off", async () => {
    upstream.answer = (_request, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(formatEvents(...buildMessageEvents(25, 40).slice(0, 2)), () => response.destroy());
    };
    await expect(post("anthropic/v1/messages", { stream: true })).rejects.toThrow();
    const body = formatEvents(...buildMessageEvents(25, 40).slice(0, 2));
    await expect.poll(readUse).toMatchObject({
      answers: 1,
      estimated: 1,
      input_tokens: 25,
      output_tokens: Math.ceil(body.length / 4),
    });
  });

  it("passes an error on and counts nothing for it", async () => {
    answerWith('{"type":"error","error":{"type":"overloaded_error"}}', "application/json", 529);
    expect(await post("anthropic/v1/messages", {})).toMatchObject({ status: 529, text: /overloaded/ });
    await expect.poll(readUse).toMatchObject({ requests: 1, answers: 0, input_tokens: 0 });
  });

  it("refuses what is no JSON object, is compressed, or names a field twice", async () => {
    expect((await post("anthropic/v1/messages", "[1]")).status).toBe(400);
    expect((await post("anthropic/v1/messages", "{")).status).toBe(400);
    expect((await post("anthropic/v1/messages", '{"model":"a","\\u006dodel":"b"}')).status).toBe(400);
    expect((await post("anthropic/v1/messages", "{}", { "content-encoding": "gzip" })).status).toBe(415);
    expect(upstream.received).toEqual([]);
  });
});

describe("a gateway of OpenAI", () => {
  const usage = { input_tokens: 100, output_tokens: 20, total_tokens: 120 };
  const completed = { type: "response.completed", response: { id: "resp_1", object: "response", usage } };

  it("stores no response, and changes nothing else", async () => {
    const body = answerWithEvents({ type: "response.created", response: { id: "resp_1" } }, completed);
    const text =
      '{"model":"m", "a" : [1.0,{"store":true}], "text":"\\"store\\":true,}\\\\", "store":true ,"stream":true}';
    expect(await post("openai/v1/responses", text)).toMatchObject({ status: 200, text: body });
    expect(upstream.received[0]?.body).toBe(
      '{"model":"m","a":[1.0,{"store":true}],"text":"\\"store\\":true,}\\\\","stream":true,"store":false}',
    );
    expect(upstream.received[0]?.headers.authorization).toBe("Bearer sk-canary-0123456789");
    expect(await readUse()).toMatchObject({ answers: 1, estimated: 0, input_tokens: 100, output_tokens: 20 });
  });

  it("refuses background work", async () => {
    expect(await post("openai/v1/responses", { background: true })).toMatchObject({
      status: 400,
      text: expect.stringMatching(/background: cannot be set/),
    });
    answerWithEvents(completed);
    expect((await post("openai/v1/responses", { background: false })).status).toBe(200);
  });

  it("refuses the id of a response that another conversation got", async () => {
    answerWithEvents(completed);
    await post("openai/v1/responses", { stream: true });
    const own = run;
    expect((await post("openai/v1/responses", { previous_response_id: "resp_1" })).status).toBe(200);
    expect((await post("openai/v1/responses", { previous_response_id: "resp_2" })).status).toBe(403);
    expect((await post("openai/v1/responses", { previous_response_id: 5 })).status).toBe(403);
    expect((await post("openai/v1/responses", { conversation: "conv_1" })).status).toBe(403);
    run = await startRun(app, [], "Other");
    await app.call(`PUT /api/workers/${run.workerId}`, { gateways: ["openai"] });
    expect((await post("openai/v1/responses", { previous_response_id: "resp_1" })).status).toBe(403);
    await app.call(`POST /api/executions/${own.executionId}/cancel`);
  });

  it("reads and deletes a stored response for its own conversation only", async () => {
    const request = async (method: string, id: string) => {
      const { status, body } = await fetch(`${app.url}/gateway/openai/v1/responses/${id}`, {
        method,
        headers: { "x-api-key": run.token },
      });
      await body?.cancel();
      return status;
    };
    answerWithEvents(completed);
    await post("openai/v1/responses", { stream: true });
    const own = run;
    expect([await request("GET", "resp_1"), await request("GET", "resp_2")]).toEqual([200, 403]);
    run = await startRun(app, [], "Reader");
    await app.call(`PUT /api/workers/${run.workerId}`, { gateways: ["openai"] });
    upstream.received.length = 0;
    expect([await request("GET", "resp_1"), await request("DELETE", "resp_1")]).toEqual([403, 403]);
    expect(upstream.received).toEqual([]);
    await app.call(`POST /api/executions/${own.executionId}/cancel`);
  });

  it("stores no completion either", async () => {
    answerWith("{}");
    await post("openai/v1/chat/completions", '{"store":true,"model":"m"}');
    await post("openai/v1/chat/completions", '{"model":"m","stream":true,"store":true}');
    expect(upstream.received.map(({ body }) => body)).toEqual([
      '{"model":"m","store":false}',
      '{"model":"m","stream":true,"store":false,"stream_options":{"include_usage":true}}',
    ]);
  });

  const chunk = { id: "c", choices: [{ delta: { content: "Hello" } }] };
  const extra = { id: "c", choices: [], usage: { prompt_tokens: 11, completion_tokens: 5 } };

  it("asks for the usage of a stream, and leaves the extra chunk out", async () => {
    answerWithEvents(chunk, extra, "[DONE]");
    const answer = await post("openai/v1/chat/completions", { stream: true, stream_options: { a: 1 } });
    expect(answer.text).toBe(formatEvents(chunk, "[DONE]"));
    expect(JSON.parse(upstream.received[0]?.body ?? "")).toEqual({
      stream: true,
      stream_options: { a: 1, include_usage: true },
    });
    expect(await readUse()).toMatchObject({ answers: 1, estimated: 0, input_tokens: 11, output_tokens: 5 });
  });

  it("passes the chunk to a client that asked for it", async () => {
    const body = answerWithEvents(chunk, extra, "[DONE]");
    const asked = '{"stream":true,"stream_options":{"include_usage":true}}';
    expect((await post("openai/v1/chat/completions", asked)).text).toBe(body);
    expect(upstream.received[0]?.body).toBe(asked);
  });

  it("counts a completion in one piece", async () => {
    answerWith(JSON.stringify({ ...extra, choices: [chunk] }));
    await post("openai/v1/chat/completions", {});
    expect(await readUse()).toMatchObject({ answers: 1, input_tokens: 11, output_tokens: 5 });
  });

  it("finds usage wherever the stream is split", async () => {
    const body = formatEvents(chunk, extra, "[DONE]");
    upstream.answer = async (_request, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      for (const character of body) {
        await new Promise<void>((resolve) => response.write(character, () => resolve()));
      }
      response.end();
    };
    expect((await post("openai/v1/chat/completions", { stream: true })).text).toBe(
      formatEvents(chunk, "[DONE]"),
    );
    expect(await readUse()).toMatchObject({ answers: 1, input_tokens: 11, output_tokens: 5 });
  });
});

it("the end of a run replaces the engine's tokens and writes the journal", async () => {
  answerWithEvents(...buildMessageEvents(25, 40));
  await post("anthropic/v1/messages", { stream: true });
  await post("anthropic/v1/models", {});
  await app.call(`POST /api/executions/${run.executionId}/cancel`);
  const execution = await app.call(`GET /api/executions/${run.executionId}`);
  expect(execution.usage).toMatchObject({ input_tokens: 25, output_tokens: 40 });
  const events = await app.db.read<{ data: string }>(
    "select data from journal where kind = 'gateway.used' and execution_id = ?",
    [run.executionId],
  );
  expect(events.map(({ data }) => JSON.parse(data))).toEqual([{
    gateways: {
      anthropic: { requests: 2, refused: 1, answers: 1, estimated: 0, input_tokens: 25, output_tokens: 40 },
    },
  }]);
  expect(await app.db.read("select * from gateway_use where execution_id = ?", [run.executionId])).toEqual(
    [],
  );
});
