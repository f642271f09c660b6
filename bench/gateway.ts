import { createServer } from "node:http";
import { computeMedian, type Row } from "./measure.ts";
import { BenchService } from "./service.ts";

const REQUESTS = 300;
const BODY = JSON.stringify({
  model: "m",
  stream: true,
  messages: [{ role: "user", content: "x".repeat(20_000) }],
});
const EVENTS = [
  { type: "message_start", message: { usage: { input_tokens: 10, output_tokens: 1 } } },
  { type: "message_delta", usage: { output_tokens: 5 } },
].map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);

/** Measures the first byte of a streamed message, with and without a gateway, request by request. */
export async function benchGateway(): Promise<Row[]> {
  const upstream = createServer((request, response) => {
    request.resume().on("end", () => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(EVENTS[0]);
      setTimeout(() => response.end(EVENTS[1]), 1);
    });
  });
  await new Promise<void>((resolve) => upstream.listen(0, "127.0.0.1", () => resolve()));
  const url = `http://127.0.0.1:${(upstream.address() as { port: number }).port}`;
  const script = 'cat > /dev/null; printf %s "$SVC_TOKEN" > token; sleep 600';
  await using service = await BenchService.start({}, {
    engines: { default: "agent", agent: { kind: "command", command: "sh", args: ["-c", script] } },
    gateways: { anthropic: { kind: "anthropic", secret: "key", upstream: url } },
  });
  await service.call("PUT /api/secrets/key", { value: "sk-bench-0123456789" });
  const worker = await service.call("POST /api/workers", { name: "A", gateways: ["anthropic"] });
  await service.call("POST /api/budgets", {
    name: "T",
    unit: "tokens",
    limit: 1e9,
    period: "24h",
    action: "stop",
  });
  await service.call("POST /api/tasks", {
    type: "immediate",
    worker_id: worker.id,
    message_id: "go",
    instruction: "go",
  });
  const token = await readToken(`${worker.work_dir}/token`);
  const ours: number[] = [];
  const theirs: number[] = [];
  for (let i = 0; i < REQUESTS; i++) {
    ours.push(await measureFirstByte(`${service.url}/gateway/anthropic/v1/messages`, token));
    theirs.push(await measureFirstByte(`${url}/v1/messages`, token));
  }
  upstream.close();
  upstream.closeAllConnections();
  const later = computeMedian(ours) - computeMedian(theirs);
  return [{
    what: "first byte of a streamed message through a gateway",
    value: computeMedian(ours),
    unit: "ms",
    bare: computeMedian(theirs),
    beside: "the same request without a gateway",
    says: `${later.toFixed(1)} ms later`,
    goal: "at most 5 ms later",
    met: later <= 5,
  }];
}

async function measureFirstByte(url: string, key: string): Promise<number> {
  const started = performance.now();
  const response = await fetch(url, { method: "POST", headers: { "x-api-key": key }, body: BODY });
  const reader = response.body?.getReader();
  await reader?.read();
  const took = performance.now() - started;
  for (let part = await reader?.read(); part?.done === false; part = await reader?.read());
  return took;
}

async function readToken(path: string): Promise<string> {
  for (;;) {
    const token = await Deno.readTextFile(path).catch(() => "");
    if (token !== "") return token;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
