import { join } from "node:path";
import { expect, it } from "vitest";
import { buildShellEngine } from "../../harness/fakes/agents.ts";
import { buildMessageEvents, formatEvents, Upstream } from "../../harness/fakes/upstream.ts";
import { openClient, PASS_HASH } from "../../harness/service/client.ts";
import { startServer } from "../../harness/service/process.ts";
import { waitForValue } from "../../harness/wait.ts";

const usage = { input_tokens: 100, output_tokens: 20 };
const ANSWERS: Record<string, object[]> = {
  "anthropic/v1/messages": buildMessageEvents(40, 20),
  "openai/v1/responses": [{ type: "response.completed", response: { id: "resp_1", usage } }],
  "openai/v1/chat/completions": [{ choices: [], usage: { prompt_tokens: 11, completion_tokens: 5 } }],
};
const ANSWERED = 60 + 120 + 16;

it(
  "a kill of the service in the middle of a stream loses no token of an answer that arrived [GTW-2]",
  async () => {
    await using upstream = await Upstream.start();
    const dataDir = await Deno.makeTempDir({ prefix: "svc-test-" });
    const settings = { secret: "key", upstream: upstream.url };
    await Deno.writeTextFile(
      join(dataDir, "config.yaml"),
      JSON.stringify({
        auth: { password_hash: PASS_HASH },
        limits: { max_attempts: 1 },
        engines: { default: "agent", agent: buildShellEngine('printf %s "$SVC_TOKEN" > token; sleep 600') },
        gateways: { anthropic: { kind: "anthropic", ...settings }, openai: { kind: "openai", ...settings } },
      }),
    );
    try {
      const server = await startServer({ dataDir });
      const client = await openClient(server.url);
      await client.call("PUT /api/secrets/key", { value: "sk-canary-0123456789" });
      const worker = await client.call("POST /api/workers", { name: "A", gateways: ["anthropic", "openai"] });
      const budget = { name: "T", unit: "tokens", limit: 1_000_000, period: "total" };
      await client.call("POST /api/budgets", budget);
      await client.call("POST /api/tasks", {
        type: "immediate",
        worker_id: worker.id,
        message_id: "go",
        instruction: "go",
      });
      const path = join(worker.work_dir, "token");
      const token = await waitForValue(async () => await Deno.readTextFile(path).catch(() => "") || null);
      const ask = (route: string) =>
        fetch(`${server.url}/gateway/${route}`, {
          method: "POST",
          headers: { "x-api-key": token },
          body: '{"stream":true}',
        });
      for (const [route, events] of Object.entries(ANSWERS)) {
        upstream.answer = (_request, response) => {
          response.writeHead(200, { "content-type": "text/event-stream" });
          // The connection stays open: the client already has the whole answer.
          response.write(formatEvents(...events, "[DONE]"));
        };
        const answer = await ask(route);
        expect(answer.status).toBe(200);
        const reader = answer.body?.getReader();
        let text = "";
        while (!text.includes("[DONE]")) {
          const part = await reader?.read();
          if (part?.done !== false) throw new Error(`The answer of ${route} has ended: ${text}`);
          text += new TextDecoder().decode(part.value);
        }
      }
      await server.end("SIGKILL");
      await using again = await startServer({ dataDir });
      const restarted = await openClient(again.url);
      const [execution] = await restarted.call("GET /api/executions");
      expect(execution).toMatchObject({
        failure: "server_lost",
        usage: { input_tokens: 40 + 100 + 11, output_tokens: 20 + 20 + 5 },
      });
      expect((await restarted.call("GET /api/budgets"))[0]).toMatchObject({ used: ANSWERED, reserved: 0 });
      const route = "GET /api/events?kind=gateway.used";
      const events = await restarted.call(route, undefined, { accept: "application/json" });
      expect(events).toMatchObject([{
        data: {
          gateways: {
            anthropic: { answers: 1, input_tokens: 40 },
            openai: { answers: 2, output_tokens: 25 },
          },
        },
      }]);
    } finally {
      await Deno.remove(dataDir, { recursive: true }).catch(() => {});
    }
  },
  120_000,
);
