import OpenAI, { type ClientOptions } from "openai";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { buildFakeEngines } from "../../harness/fakes/agents.ts";
import { type App, openApp } from "../../harness/service/app.ts";
import { connectOpenAi, getError as fail, say, SCOPES } from "../../harness/service/openai.ts";
import { startRun } from "../../harness/service/run.ts";

let app: App;
let ada: { id: string };

beforeAll(async () => {
  app = await openApp({ inMemory: true, config: { engines: buildFakeEngines() } });
  ada = await app.call("POST /api/workers", { name: "Ada" });
});

afterAll(() => app[Symbol.asyncDispose]());

const connect = (scopes: string[] = SCOPES, options: ClientOptions = {}) =>
  connectOpenAi(app, scopes, options);

describe("the openai package (contract 30)", () => {
  it("lists the workers as models", async () => {
    const client = await connect();
    const models = [];
    for await (const model of client.models.list()) models.push(model);
    expect(models).toEqual([
      { id: "Ada", object: "model", created: expect.any(Number), owned_by: "svc", name: "Ada" },
    ]);
  });

  it("gets an answer from the worker that the model names, by name or id", async () => {
    const client = await connect();
    for (const model of ["Ada", "ada", ada.id]) {
      const answer = await client.chat.completions.create({ model, messages: say("say hello") });
      expect(answer).toMatchObject({
        id: expect.stringMatching(/^chatcmpl-/),
        object: "chat.completion",
        model,
        choices: [{ index: 0, finish_reason: "stop", message: { role: "assistant", content: "hello" } }],
        usage: { total_tokens: 0 },
      });
    }
  });

  it("streams an answer with its usage at the end", async () => {
    const client = await connect();
    const stream = await client.chat.completions.create({
      model: "Ada",
      messages: say("say hello"),
      stream: true,
      stream_options: { include_usage: true },
    });
    const chunks = [];
    for await (const chunk of stream) chunks.push(chunk);
    expect(chunks.map(({ choices }) => choices[0]?.delta.content ?? "").join("")).toBe("hello");
    expect(chunks.at(-2)?.choices[0]?.finish_reason).toBe("stop");
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { total_tokens: 0 } });
  });
});

describe("errors in OpenAI's form (contract 30)", () => {
  it("a wrong key is 401", async () => {
    const client = new OpenAI({ baseURL: `${app.url}/v1`, apiKey: "sk-wrong", maxRetries: 0 });
    const error = await fail(client.models.list());
    expect(error).toMatchObject({ status: 401, type: "authentication_error", code: "invalid_api_key" });
    expect(error.message).toMatch(/another service\. Create another one with `svc ctl token create`\.$/);
    const bare = await app.send("GET /v1/models", undefined, { authorization: "" });
    expect(bare.body.error.message).not.toContain("/api/auth/login");
  });

  it.each([[["write:chat"], "write:tasks"], [["write:tasks"], "write:chat"], [["read:*"], "write:chat"]])(
    "a token with %j lists no models and reaches no worker: %s is missing",
    async (scopes, missing) => {
      const client = await connect(scopes);
      const create = () => client.chat.completions.create({ model: "Ada", messages: say("say hello") });
      for (const error of [await fail(client.models.list()), await fail(create())]) {
        expect(error).toMatchObject({ status: 403, type: "permission_error", code: "forbidden" });
        expect(error.message).toContain(missing);
      }
    },
  );

  it("a run's token is 403, even with all scopes", async () => {
    const run = await startRun(app, ["*:*"], "Runner");
    const client = new OpenAI({ baseURL: `${app.url}/v1`, apiKey: run.token, maxRetries: 0 });
    expect(await fail(client.models.list())).toMatchObject({ status: 403 });
    const create = client.chat.completions.create({ model: "Ada", messages: say("say hello") });
    expect(await fail(create)).toMatchObject({ status: 403, type: "permission_error" });
    await app.call(`POST /api/executions/${run.executionId}/cancel`);
  });

  it("an unknown worker is 404 with the closest name, and a name of two workers with their ids", async () => {
    const client = await connect();
    const create = (model: string) => client.chat.completions.create({ model, messages: say("say hello") });
    const unknown = await fail(create("Adda"));
    expect(unknown).toMatchObject({ status: 404, code: "model_not_found", param: "model" });
    expect(unknown.message).toContain("Did you mean Ada?");
    const twins = [];
    for (const name of ["Twin", "twin"]) twins.push(await app.call("POST /api/workers", { name }));
    const ambiguous = await fail(create("Twin"));
    expect(ambiguous).toMatchObject({ status: 404, code: "model_not_found", param: "model" });
    for (const { id } of twins) expect(ambiguous.message).toContain(id);
    const ids = (await client.models.list()).data.map(({ id }) => id);
    expect(ids).toEqual(expect.arrayContaining(["Ada", ...twins.map(({ id }) => id)]));
    for (const { id } of twins) await app.call(`DELETE /api/workers/${id}`);
  });

  it.each([
    ["tools", { tools: [{ type: "function", function: { name: "f" } }] }],
    ["functions", { functions: [{ name: "f" }] }],
    ["tool_choice", { tool_choice: "required" }],
    ["n", { n: 2 }],
    ["logprobs", { logprobs: true }],
    ["response_format", { response_format: { type: "json_object" } }],
    ["modalities", { modalities: ["text", "audio"] }],
    ["messages", { messages: [] }],
    ["messages.0.role", { messages: [{ role: "tool", tool_call_id: "1", content: "x" }] }],
    ["messages.0.content", { messages: [{ role: "user", content: " " }] }],
    ["messages.1.role", { messages: [...say("say hello"), { role: "assistant", content: "hello" }] }],
    ["messages.0.content.1", {
      messages: [{
        role: "user",
        content: [{ type: "text", text: "look" }, { type: "image_url", image_url: { url: "data:," } }],
      }],
    }],
    ["user", { user: "u".repeat(101) }],
    ["metadata.conversation", { metadata: { conversation: "c".repeat(101) } }],
  ])("%s that no worker can follow is 400 and names the field", async (param, fields) => {
    const client = await connect();
    const body = { model: "Ada", messages: say("say hello"), ...fields };
    const error = await fail(client.post("/chat/completions", { body }));
    expect(error).toMatchObject({ status: 400, type: "invalid_request_error", param });
    if (param === "messages") expect(error.message).toBe("400 messages: must not be empty");
  });

  it("a failed run is one error that the package does not retry", async () => {
    const client = await connect(SCOPES, { maxRetries: 2 });
    const error = await fail(client.chat.completions.create({ model: "Ada", messages: say("exit 3") }));
    expect(error).toMatchObject({ status: 502, type: "server_error", code: "run_failed" });
    expect(error.message).toContain("exit code 3");
    const ran = await app.call("GET /api/executions?failure=exit_code&page_size=10");
    expect(ran).toHaveLength(1);
  });

  it("an unknown route, a wrong method, and a body that is no JSON are in the same form", async () => {
    const { token } = await app.call("POST /api/tokens", { name: "plain", scopes: SCOPES });
    const send = async (method: string, path: string, body?: string) => {
      const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
      const response = await fetch(`${app.url}${path}`, {
        method,
        headers,
        ...(body === undefined ? {} : { body }),
      });
      return [response.status, response.headers.get("content-type"), await response.json()];
    };
    const error = { message: expect.any(String), type: "invalid_request_error", param: null };
    const json = "application/json";
    expect(await send("POST", "/v1/embeddings", "{}")).toEqual([404, json, {
      error: { ...error, code: "not_found" },
    }]);
    expect(await send("GET", "/v1")).toEqual([404, json, { error: { ...error, code: "not_found" } }]);
    const wrong = { error: { ...error, code: "method_not_allowed" } };
    expect(await send("GET", "/v1/chat/completions")).toEqual([405, json, wrong]);
    const broken = { error: { ...error, code: "invalid_request" } };
    expect(await send("POST", "/v1/chat/completions", "{")).toEqual([400, json, broken]);
  });
});
