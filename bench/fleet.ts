import { median, type Row, timed } from "./measure.ts";
import { BenchService } from "./service.ts";

const SCHEDULES = 10_000;
const OBJECTS = 500;
const ROUNDS = 5;
const REQUESTS = 100;

/** Many schedules in one place, and the fleet as a file. */
export async function benchFleet(): Promise<Row[]> {
  return [...await applied(), ...await many()];
}

async function applied(): Promise<Row[]> {
  await using service = await BenchService.start();
  const worker = { name: "Ada" };
  const rounds: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    // Each round everything is new.
    const schedules = schedulesOf(OBJECTS - 1, `round ${round}`);
    const fleet = { workers: [{ ...worker, memory: `round ${round}` }], schedules };
    const [ms = NaN] = await timed(1, 0, async () => {
      await service.call("POST /api/fleet/apply", { fleet });
    });
    rounds.push(ms);
  }
  return [row(`apply of ${OBJECTS} new objects, one batch (p50)`, median(rounds), 1_000)];
}

async function many(): Promise<Row[]> {
  await using service = await BenchService.start();
  const fleet = { workers: [{ name: "Ada" }], schedules: schedulesOf(SCHEDULES, "all") };
  await service.call("POST /api/fleet/apply", { fleet });
  const [first, ...others] = await service.call("GET /api/schedules?page_size=100");
  const listed = await timed(REQUESTS, 10, async (n) => {
    await service.text(`/api/schedules?page_size=${60 + n % 40}`);
  });
  const edited = await timed(REQUESTS, 10, async (n) => {
    await service.call(`PUT /api/tasks/${first.id}`, { cron: `${(n + 20) % 60} 3 * * *` });
  });
  const paused = await timed(others.length, 0, async (n) => {
    await service.call(`PUT /api/tasks/${others[n].id}`, { paused: true });
  });
  const [exported = NaN] = await timed(1, 0, async () => {
    await service.text("/api/fleet");
  });
  const of = `of ${SCHEDULES} schedules`;
  return [
    row(`the first page ${of} (p50)`, median(listed), 20),
    row(`one ${of} edited (p50)`, median(edited), 20),
    row(`one ${of} paused (p50)`, median(paused), 20),
    row(`export ${of}`, exported, 2_000),
  ];
}

function schedulesOf(count: number, what: string): object[] {
  return Array.from({ length: count }, (_, n) => ({
    name: `${what}, ${n}`,
    worker: "Ada",
    instruction: `Do the ${n}th thing of ${what}`,
    cron: `${n % 60} ${n % 24} * * *`,
    time_zone: "Europe/Berlin",
  }));
}

function row(what: string, value: number, most: number): Row {
  return { what, value, unit: "ms", says: "", goal: `at most ${most} ms`, met: value <= most };
}
