import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { Upstream } from "../../harness/fakes/upstream.ts";
import { type App, openApp, type TestSettings } from "../../harness/service/app.ts";
import type { Json } from "../../harness/service/client.ts";
import { openWarmService, readPid } from "../../harness/service/open_world.ts";
import { createTempDir } from "../../harness/service/process.ts";
import { waitUntil } from "../../harness/wait.ts";
import { Collector, type ReceivedSpan } from "./collector.ts";

// Speaks like Claude Code: uses a tool and a gateway, and answers with the trace that it got.
const AGENT = `#!/bin/sh
[ "$1" = --version ] && { echo "2.1.329 (Claude Code)"; exit 0; }
cat > /dev/null
echo '{"type":"system","subtype":"init","session_id":"s"}'
echo '{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t","name":"Bash","input":{"command":"cat plans"}}]}}'
curl -s -H "authorization: Bearer $SVC_TOKEN" -H "traceparent: $TRACEPARENT" -H "tracestate: a=b" "$SVC_URL/gateway/forge/x"  > /dev/null
echo '{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t","content":"hidden","is_error":false}]}}'
printf '{"type":"result","subtype":"success","is_error":false,"result":"%s","usage":{"input_tokens":3,"output_tokens":2}}\\n' "$TRACEPARENT"
`;

const CALLER = { trace: "0af7651916cd43dd8448eb211c80319c", span: "b7ad6b7169203331" };
const TRACEPARENT = `00-${CALLER.trace}-${CALLER.span}-00`;

interface World extends AsyncDisposable {
  app: App;
  collector: Collector;
  upstream: Upstream;
  worker: Json;
  session: Json;
}

async function open(telemetry: Partial<TestSettings["telemetry"]> = {}): Promise<World> {
  const folder = await createTempDir();
  const agent = join(folder.path, "agent");
  await Deno.writeTextFile(agent, AGENT, { mode: 0o755 });
  const collector = new Collector();
  const upstream = await Upstream.start();
  const app = await openApp({
    config: {
      engines: {
        default: "agent",
        agent: { kind: "claude", command: agent, env: { ANTHROPIC_API_KEY: "x" } },
      },
      telemetry: { otlp: collector.url, headers: { "x-key": "secret:collector" }, ...telemetry },
      gateways: {
        forge: {
          ...{ kind: "http", secret: "forge-key", upstream: upstream.url, allow: ["GET /**"] },
          header: "authorization: Bearer {secret}",
        },
      },
    },
  });
  await app.call("PUT /api/secrets/collector", { value: "key-of-the-collector" });
  await app.call("PUT /api/secrets/forge-key", { value: "key-of-the-forge" });
  const worker = await app.call("POST /api/workers", { name: "Ada", gateways: ["forge"] });
  const session = await app.call("POST /api/local/sessions", { worker_id: worker.id });
  return {
    app,
    collector,
    upstream,
    worker,
    session,
    async [Symbol.asyncDispose]() {
      await app[Symbol.asyncDispose]();
      await collector[Symbol.asyncDispose]();
      await upstream[Symbol.asyncDispose]();
      await folder[Symbol.asyncDispose]();
    },
  };
}

async function ask({ app, session }: World, headers: Record<string, string> = {}): Promise<Json> {
  const sent = await app.send(
    `POST /api/local/sessions/${session.id}/messages`,
    { content: "the plan of Eve" },
    headers,
  );
  await app.settle();
  return sent.body;
}

/** Draws the tree of spans, each child below its parent. */
function drawTree(spans: readonly ReceivedSpan[], parent = "", indent = ""): string[] {
  return spans.filter(({ parentSpanId = "" }) => parentSpanId === parent).flatMap(({ name, spanId }) => [
    `${indent}${name}`,
    ...drawTree(spans, spanId, `${indent}  `),
  ]);
}

describe("traces (contract 29)", () => {
  it("are one tree per message over intake, route, queue, run, tool, gateway and delivery", async () => {
    await using world = await open();
    const { message_id } = await ask(world);
    const spans = await world.collector.waitFor("deliver local");
    expect(drawTree(spans)).toEqual([
      "message local",
      "  intake",
      "  route",
      "  queue",
      "  invoke_agent Ada",
      "    gateway forge",
      "    execute_tool Bash",
      "    deliver local",
    ]);
    expect(new Set(spans.map(({ traceId }) => traceId))).toEqual(new Set([message_id.replaceAll("-", "")]));
    for (const span of spans) {
      expect(BigInt(span.endTimeUnixNano) >= BigInt(span.startTimeUnixNano), span.name).toBe(true);
    }
    expect(world.collector.read(spans.find(({ name }) => name === "invoke_agent Ada"))).toMatchObject({
      "gen_ai.operation.name": "invoke_agent",
      "gen_ai.agent.name": "Ada",
      "gen_ai.conversation.id": `local:${world.session.id}`,
      "gen_ai.usage.input_tokens": 3,
      "svc.engine": "agent",
    });
    expect(world.collector.requests[0]).toEqual({ path: "/v1/traces", key: "key-of-the-collector" });
  });

  it("have no text of messages, tools and errors, and with content: true have it", async () => {
    const texts = ["plan of Eve", "cat plans", "hidden"];
    await using without = await open();
    await ask(without);
    await without.collector.waitFor("deliver local");
    for (const text of texts) expect(without.collector.text).not.toContain(text);
    await using having = await open({ content: true });
    await ask(having);
    await having.collector.waitFor("deliver local");
    expect(having.collector.text).toContain("plan of Eve");
    expect(having.collector.text).toContain("cat plans");
  });

  it("continue the trace of an authenticated caller, and runs get it, but providers do not", async () => {
    await using world = await open();
    await ask(world, { traceparent: TRACEPARENT });
    const spans = await world.collector.waitFor("deliver local");
    expect(new Set(spans.map(({ traceId }) => traceId))).toEqual(new Set([CALLER.trace]));
    const [root] = spans.filter(({ name }) => name === "message local");
    expect(root?.parentSpanId).toBe(CALLER.span);
    const run = spans.find(({ name }) => name === "invoke_agent Ada");
    const [reply] = (await world.app.call(`GET /api/local/sessions/${world.session.id}/messages`)).slice(-1);
    expect(reply.content).toBe(`00-${CALLER.trace}-${run?.spanId}-01`);
    const [{ headers } = { headers: {} }] = world.upstream.received;
    expect(Object.keys(headers)).not.toContain("traceparent");
    expect(Object.keys(headers)).not.toContain("tracestate");
  });

  it("of a task continue the trace of its caller, and each run of a schedule starts a trace", async () => {
    await using world = await open();
    const task = { message_id: "m", worker_id: world.worker.id, instruction: "x" };
    const ignored = { traceparent: "00-zz-1-00" };
    await world.app.send("POST /api/tasks", { ...task, type: "immediate" }, { traceparent: TRACEPARENT });
    await world.app.send("POST /api/tasks", { ...task, type: "immediate" }, ignored);
    await world.app.settle();
    const listRuns = () => world.collector.spans.filter(({ name }) => name === "invoke_agent Ada");
    await waitUntil("both runs arrive", () => listRuns().length === 2);
    expect(listRuns().map(({ parentSpanId = "" }) => parentSpanId).sort()).toEqual(["", CALLER.span]);
    const { body } = await world.app.send(
      "POST /api/tasks",
      { ...task, type: "scheduled", cron: "0 0 1 1 *" },
      { traceparent: TRACEPARENT },
    );
    await world.app.call(`POST /api/tasks/${body.id}/run`);
    await world.app.settle();
    await waitUntil("the run of the schedule arrives", () => listRuns().length === 3);
    expect(listRuns()[2]?.parentSpanId ?? "").toBe("");
  });

  it("leave an agent open, whose bash gets the trace of each run", async () => {
    await using collector = new Collector();
    await using one = await openWarmService({}, {}, 0, { telemetry: { otlp: collector.url } });
    const first = readPid(await one.say("pid"));
    const run = await one.say("bash echo $TRACEPARENT");
    expect(run.result).toContain(`-${run.id.replaceAll("-", "").slice(-16)}-`);
    expect((await one.say("env TRACEPARENT")).result).toBe("nothing");
    expect((await one.say("pid")).result).toBe(`${first} 4`);
  });

  it("of a dead collector cost no message anything, are bounded and counted, and arrive when it is back", async () => {
    await using world = await open();
    world.collector.mode = "dead";
    const began = performance.now();
    await ask(world);
    await waitUntil("a request fails", () => world.collector.refused > 0);
    await ask(world);
    expect(performance.now() - began).toBeLessThan(20_000);
    world.collector.mode = "ok";
    await waitUntil(
      "both traces arrive",
      () => world.collector.spans.filter(({ name }) => name === "deliver local").length === 2,
      30_000,
    );
    const metrics = await world.app.send("GET /metrics");
    expect(String(metrics.body)).toContain("svc_telemetry_dropped_spans_total 0");
  });
});
