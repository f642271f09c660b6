import { computeMedian, measureRate, type Row, startBareHandler } from "./measure.ts";
import { BenchService } from "./service.ts";

const ROUNDS = 3;
// Equal rates differ by less between runs on a shared machine.
const SAME_PERCENT = 90;

/** Measures the rate of reading workers with a token. Baseline: an empty handler on the same server that sends the same bytes. */
export async function benchRest(): Promise<Row[]> {
  await using service = await BenchService.start();
  for (let i = 0; i < 50; i++) {
    await service.call("POST /api/workers", { name: `Worker ${i}`, description: "Does one of fifty things" });
  }
  const list = await service.call("GET /api/workers?page_size=50");
  const one = `/api/workers/${list[0].id}`;
  return [
    await compare(service, "GET /api/workers, 50 rows", "/api/workers", JSON.stringify(list), 40),
    await compare(service, "GET /api/workers/:id", one, JSON.stringify(list[0]), 45),
    await compareEngines(service),
  ];
}

// Agents that the machine need not have.
const ENGINES = ["claude", "codex", "copilot", "gemini", "goose", "opencode", "qwen"];

/** Measures a list of workers of seven engines. Baseline: the same list of the engine `echo`, which needs no program. */
async function compareEngines(echo: BenchService): Promise<Row> {
  const engines = Object.fromEntries(ENGINES.map((name) => [name, {}]));
  await using service = await BenchService.start({}, { engines: { default: "echo", ...engines } });
  for (let i = 0; i < 50; i++) {
    const engine = ENGINES[i % ENGINES.length];
    await service.call("POST /api/workers", {
      name: `Worker ${i}`,
      description: "Does one of fifty things",
      engine,
    });
  }
  const ours: number[] = [];
  const theirs: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    ours.push(await measureRate(`${service.url}/api/workers`, service.token));
    theirs.push(await measureRate(`${echo.url}/api/workers`, echo.token));
  }
  const share = 100 * computeMedian(ours) / computeMedian(theirs);
  return {
    what: "GET /api/workers, 50 rows of seven engines",
    value: computeMedian(ours),
    unit: "/s",
    bare: computeMedian(theirs),
    beside: "with echo",
    says: `${share.toFixed(1)} % of it`,
    goal: `at least ${SAME_PERCENT} %`,
    met: share >= SAME_PERCENT,
  };
}

async function compare(
  service: BenchService,
  what: string,
  path: string,
  body: string,
  percent: number,
): Promise<Row> {
  await using bare = await startBareHandler(body);
  const ours: number[] = [];
  const theirs: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    ours.push(await measureRate(service.url + path, service.token));
    theirs.push(await measureRate(bare.url));
  }
  const share = 100 * computeMedian(ours) / computeMedian(theirs);
  return {
    what,
    value: computeMedian(ours),
    unit: "/s",
    bare: computeMedian(theirs),
    beside: "an empty handler, same bytes",
    says: `${share.toFixed(1)} % of it`,
    goal: `at least ${percent} %`,
    met: share >= percent,
  };
}
