import { newId } from "../src/base/id.ts";
import { Database } from "../src/store/database.ts";
import { percentile, type Row, short } from "./measure.ts";
import { addRunners, nameOf, RunnerCrowd, RUNS_ON } from "./runner_crowd.ts";
import { idleCpu, ROOM } from "./runners.ts";
import { BenchService } from "./service.ts";

const RUNNERS = numberOf("RUNNERS", 1_000);
const WORKERS = numberOf("WORKERS", 100_000);
/** Tasks a second, and how long each lasts. */
const LOADS = [
  { rate: 50, holdMs: 0 },
  { rate: 200, holdMs: 0 },
  { rate: 400, holdMs: 0 },
  { rate: 200, holdMs: 10_000 },
];
const SECONDS = 10;
const MAX_RUNS = 4;
const BATCH = 500;
// One waiting task for each of so many workers, all at once.
const BURSTS = [1_000, 5_000];
const LATE_MS = 1_000;

/** So many as the environment says, for less than the whole. */
function numberOf(name: string, usual: number): number {
  return Number(Deno.env.get(`SVC_BENCH_${name}`) ?? usual);
}

/**
 * A fleet in simulation: many runner loops in one process against a real service. Each worker has its home on one of the runners, as after
 * its first run. Tasks come at rates that rise, and then for many workers at once.
 */
export async function benchRunnerFleet(): Promise<Row[]> {
  await using fleet = await Fleet.open();
  const rows = [
    row(`idle CPU with ${RUNNERS} runners and ${WORKERS} workers`, await idleCpu(fleet.service, 20), "%"),
    row("the same: memory of the service", await fleet.service.memoryMb(), "MB"),
  ];
  for (const load of LOADS) rows.push(...await fleet.steady(load));
  for (const tasks of BURSTS) rows.push(...await fleet.burst(Math.min(tasks, WORKERS)));
  return [...rows, row("memory of the service after that", await fleet.service.memoryMb(), "MB")];
}

function row(what: string, value: number, unit: string, says = ""): Row {
  // It takes minutes: each is told when it is known.
  console.error(`${what}: ${short(value)} ${unit} ${says}`);
  return { what, value, unit, says, goal: "", met: null };
}

class Fleet implements AsyncDisposable {
  readonly service: BenchService;
  readonly #crowd: RunnerCrowd;
  readonly #workers: string[];

  private constructor(service: BenchService, crowd: RunnerCrowd, workers: string[]) {
    this.service = service;
    this.#crowd = crowd;
    this.#workers = workers;
  }

  static async open(): Promise<Fleet> {
    const service = await BenchService.start(ROOM);
    const tokens = await addRunners(service, RUNNERS);
    const workers = Array.from({ length: WORKERS }, () => newId());
    await service.restartWith((dataDir) => storeWorkers(dataDir, workers));
    const crowd = await RunnerCrowd.start(service, tokens, MAX_RUNS);
    return new Fleet(service, crowd, workers);
  }

  /** Tasks for workers here and there, so many a second. */
  async steady({ rate, holdMs }: { rate: number; holdMs: number }): Promise<Row[]> {
    const sent = new Map<string, number>();
    const cpu = await this.service.cpuMs();
    const started = performance.now();
    const requests: Promise<void>[] = [];
    for (let n = 0; n < rate * SECONDS; n++) {
      const due = started + 1_000 * n / rate;
      const early = due - performance.now();
      if (early > 1) await new Promise((resolve) => setTimeout(resolve, early));
      // From when it was due: a service that is late with its answers does not make the load less.
      const at = performance.timeOrigin + due;
      requests.push(this.#send(`hold ${holdMs}`).then((id) => void sent.set(id, at)));
    }
    await Promise.all(requests);
    const percent = (await this.service.cpuMs() - cpu) / (performance.now() - started) * 100;
    const waits = await this.#waits(sent);
    const load = `${rate} tasks/s${holdMs === 0 ? "" : ` of ${holdMs / 1_000} s each`}`;
    const all = `${load}: due -> its order is on the runner`;
    return [
      row(`${all} (p50)`, percentile(waits, 50), "ms"),
      row(`${all} (p99)`, percentile(waits, 99), "ms", percentile(waits, 99) > LATE_MS ? "late" : ""),
      row(`${load}: CPU of the service`, percent, "%"),
    ];
  }

  async #send(instruction: string): Promise<string> {
    const worker_id = this.#workers[Math.floor(Math.random() * WORKERS)];
    const body = { message_id: "bench", worker_id, instruction, type: "immediate" };
    return (await this.service.call("POST /api/tasks", body)).id;
  }

  /** Waits until each order has come; answers how long each took. */
  async #waits(sent: ReadonlyMap<string, number>): Promise<number[]> {
    for (;;) {
      const orders = await this.#crowd.orders();
      const waits = [...sent].flatMap(([task, at]) => {
        const came = orders.get(task);
        return came === undefined ? [] : [came - at];
      });
      if (waits.length === sent.size) return waits;
      await new Promise((resolve) => setTimeout(resolve, 250));
    }
  }

  /** One task for each of so many workers at once, until all have ended; and how the service answers others meanwhile. */
  async burst(count: number): Promise<Row[]> {
    const probes = new Probes(this.service);
    const before = await this.#completed();
    const started = performance.now();
    for (let at = 0; at < count; at += BATCH) {
      const tasks = this.#workers.slice(at, Math.min(at + BATCH, count)).map((worker_id) => ({
        ...{ message_id: "bench", worker_id, instruction: "x", type: "immediate" },
      }));
      await this.service.call("POST /api/tasks/batch", { tasks });
    }
    const stored = performance.now() - started;
    while (await this.#completed() < before + count) await new Promise((resolve) => setTimeout(resolve, 250));
    const rate = count / ((performance.now() - started) / 1_000);
    const { p99, most } = await probes.end();
    return [
      row(
        `${count} workers get a task at once, end to end`,
        rate,
        "/s",
        `stored in ${(stored / 1e3).toFixed(1)} s`,
      ),
      row("meanwhile GET /livez (p99)", p99, "ms", `at most ${most.toFixed(0)} ms`),
    ];
  }

  async #completed(): Promise<number> {
    const { executions } = await this.service.call("GET /api/system/overview");
    return executions.completed ?? 0;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#crowd[Symbol.asyncDispose]();
    await this.service[Symbol.asyncDispose]();
  }
}

const PROBE_EVERY_MS = 20;

/** How long others wait for an answer. */
class Probes {
  readonly #service: BenchService;
  readonly #times: number[] = [];
  readonly #over: Promise<void>;
  #ended = false;

  constructor(service: BenchService) {
    this.#service = service;
    this.#over = this.#run();
  }

  async #run(): Promise<void> {
    while (!this.#ended) {
      const started = performance.now();
      await (await fetch(`${this.#service.url}/livez`)).text();
      this.#times.push(performance.now() - started);
      await new Promise((resolve) => setTimeout(resolve, PROBE_EVERY_MS));
    }
  }

  async end(): Promise<{ p99: number; most: number }> {
    this.#ended = true;
    await this.#over;
    return { p99: percentile(this.#times, 99), most: percentile(this.#times, 100) };
  }
}

/** Puts workers straight into the database file, while its server is stopped. */
async function storeWorkers(dataDir: string, ids: readonly string[]): Promise<void> {
  const db = await Database.open(`file:${dataDir}/svc.db`);
  for (let at = 0; at < ids.length; at += BATCH) {
    await db.write(
      ids.slice(at, at + BATCH).map((id, n) => ({
        sql: `insert into worker (id, name, name_key, engine, work_dir, runs_on, home, created_at, updated_at)
        values (?, ?, ?, 'echo', ?, ?, ?, 1, 1)`,
        args: [
          ...[id, `w${at + n}`, `w${at + n}`, `${dataDir}/workers/${id}`, JSON.stringify(RUNS_ON)],
          nameOf((at + n) % RUNNERS),
        ],
      })),
    );
  }
  await db.close();
}
