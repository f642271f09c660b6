import { computeMedian, measureRuns, type Row, startBareServer } from "./measure.ts";
import { BenchService } from "./service.ts";

const TIMES = 150;
const WARM = 30;
const ECHO_MAX_MS = 3;

/** Measures message to reply on the stream. Baselines: two HTTP hops, and the spawn of the program. */
export async function benchReply(): Promise<Row[]> {
  await using service = await BenchService.start({
    SVC_ENGINES__CAT__KIND: "command",
    SVC_ENGINES__CAT__COMMAND: "cat",
  });
  await using bare = await startBareServer("{}");
  const echo = await measureReplies(service, "echo");
  const cat = await measureReplies(service, "cat");
  const hops = await measureRuns(TIMES, WARM, async () => {
    for (let hop = 0; hop < 2; hop++) await (await fetch(bare.url, { method: "POST", body: "{}" })).text();
  });
  const spawns = await measureRuns(TIMES, WARM, spawnCat);
  const [echoMs = NaN, catMs = NaN, hopsMs = NaN, spawnMs = NaN] = [echo, cat, hops, spawns].map(
    computeMedian,
  );
  const row = (what: string, value: number, bareMs: number, beside: string, goal: boolean): Row => ({
    what,
    value,
    unit: "ms",
    bare: bareMs,
    beside,
    says: `${(value - bareMs).toFixed(2)} ms over it`,
    goal: goal ? `at most ${ECHO_MAX_MS} ms over` : "",
    met: goal ? value - bareMs <= ECHO_MAX_MS : null,
  });
  return [
    row("message -> reply, echo (p50)", echoMs, hopsMs, "two HTTP hops", true),
    row("message -> reply, command: cat (p50)", catMs, hopsMs + spawnMs, "two hops + spawning cat", false),
  ];
}

async function measureReplies(service: BenchService, engine: string): Promise<number[]> {
  const worker = await service.call("POST /api/workers", { name: `bench-${engine}`, engine });
  const { id } = await service.call("POST /api/local/sessions", { worker_id: worker.id });
  const stream = await service.stream(id);
  const times = await measureRuns(TIMES, WARM, async (index) => {
    const before = stream.named("message").length;
    await service.call(`POST /api/local/sessions/${id}/messages`, { content: `message ${index}` });
    await stream.until((one) => one.named("message").length > before);
  });
  await stream.close();
  return times;
}

async function spawnCat(): Promise<void> {
  const child = new Deno.Command("cat", { stdin: "piped", stdout: "piped", stderr: "null" }).spawn();
  const writer = child.stdin.getWriter();
  await writer.write(new TextEncoder().encode("message"));
  await writer.close();
  await child.output();
}
