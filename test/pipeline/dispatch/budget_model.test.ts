import { describe, expect, it } from "vitest";
import type { Call } from "../../../src/api/call/call.ts";
import { createId } from "../../../src/base/id.ts";
import type { Budget } from "../../../src/domain/workers/budget.ts";
import { parseJson } from "../../../src/domain/call/json.ts";
import type { BudgetPeriod, BudgetUnit } from "../../../src/domain/call/vocabulary.ts";
import { Admission } from "../../../src/pipeline/dispatch/admission.ts";
import { finishBeeRun, insertBeeRun } from "../../../src/store/chat/bee_run.ts";
import { finishExecution, insertExecution, startExecution } from "../../../src/store/work/execution.ts";
import {
  insertReservation,
  updateReservationUse,
  updateReservationWait,
} from "../../../src/store/workers/budget_ledger.ts";
import type { WaitingTask } from "../../../src/store/work/task_queue.ts";
import { type App, openApp } from "../../harness/service/app.ts";
import { TestClock } from "../../harness/clock.ts";
import { createRandom } from "../../harness/model/schedule.ts";

const SEEDS = Number(Deno.env.get("SVC_TEST_SEEDS") ?? 1);
const OPERATIONS = 2_000;
const ZONE = "Europe/Berlin";
const CALL: Call = {
  caller: { subject: "user:test", scopes: ["*:*"], run: null, person: null },
  findAccessEnd: () => Promise.resolve(null),
  idempotency: null,
  trace: "",
};
const PERIODS: Partial<Record<BudgetPeriod, number>> = { "5h": 18e6, "24h": 864e5, "7d": 6048e5 };
const STEPS_MS = [1_000, 60_000, 1_800_000, 3_600_000, 18_000_000, 86_400_000];

interface Use {
  tokens: number;
  ms: number;
  usd: number;
}

/** A run in the model, which keeps all runs and recounts them for every question. */
interface ModelRun {
  targets: string[];
  worker: string;
  expected: Use;
  counted: Use;
  startedAt: number;
  endedAt: number | null;
  waitedMs: number;
  waitingSince: number | null;
}

// Runs of the coordinator count globally, for their conversation and engine, and have a separate median.
const COORDINATOR = "bee";

/** Returns how long a run has taken without its waits for a person. */
function lasted({ startedAt, waitedMs, waitingSince }: ModelRun, now: number): number {
  return (waitingSince ?? now) - startedAt - waitedMs;
}

const MONTH = new Intl.DateTimeFormat("en-CA", { timeZone: ZONE, year: "numeric", month: "2-digit" });

/** Contract 14 as sums over lists, without any optimization. */
class Model {
  readonly runs = new Map<string, ModelRun>();
  readonly ended: ModelRun[] = [];

  amount(use: Use, unit: BudgetUnit): number {
    return unit === "runs"
      ? 1
      : unit === "tokens"
      ? use.tokens
      : unit === "minutes"
      ? use.ms / 60_000
      : use.usd;
  }

  settled({ target, unit, period }: Budget, now: number, counts = (_run: ModelRun) => true): number {
    const span = PERIODS[period];
    return this.ended.filter((run) =>
      run.targets.includes(target) && counts(run) &&
      (span !== undefined
        ? (run.endedAt ?? 0) > now - span
        : period === "total" || MONTH.format(run.endedAt ?? 0) === MONTH.format(now))
    ).reduce((sum, run) => sum + this.amount(run.counted, unit), 0);
  }

  open({ target, unit }: Budget, now: number): { counted: number; reserved: number } {
    let [counted, reserved] = [0, 0];
    for (const run of this.runs.values()) {
      if (!run.targets.includes(target)) continue;
      const used = unit === "runs" ? 0 : this.amount({ ...run.counted, ms: lasted(run, now) }, unit);
      counted += used;
      reserved += Math.max(0, this.amount(run.expected, unit) - used);
    }
    return { counted, reserved };
  }

  expected(worker: string): Use {
    const last = this.ended.filter((run) => run.worker === worker).slice(-20).map(({ counted }) => counted);
    const middle = (values: number[]) => {
      const sorted = values.sort((a, b) => a - b);
      const half = sorted.length / 2;
      return sorted.length === 0
        ? 0
        : ((sorted[Math.ceil(half) - 1] ?? 0) + (sorted[Math.floor(half)] ?? 0)) / 2;
    };
    return {
      tokens: Math.round(middle(last.map(({ tokens }) => tokens))),
      ms: Math.round(middle(last.map(({ ms }) => ms))),
      usd: Math.round(middle(last.map(({ usd }) => usd)) * 1e9) / 1e9,
    };
  }

  mayStart(budget: Budget, sum: number, more: number): boolean {
    if (more_than(sum, budget.limit) || close(sum, budget.limit)) return false;
    return close(sum, 0) || !more_than(sum + more, budget.limit);
  }

  /** Returns the first time at which enough has expired to start the run, if nothing else happens. */
  until(budget: Budget, now: number, more: number): number | null {
    const { counted, reserved } = this.open(budget, now);
    const at = (time: number) => this.settled(budget, time) + counted + reserved;
    const span = PERIODS[budget.period];
    const times = span === undefined
      ? budget.period === "month" ? [nextMonth(now)] : []
      : this.ended.map(({ endedAt }) => (endedAt ?? 0) + span).filter((time) => time > now);
    // The amounts of a month do not count in the next one.
    return times.sort((a, b) => a - b).find((time) => this.mayStart(budget, at(time), more)) ?? null;
  }
}

function close(a: number, b: number): boolean {
  return Math.abs(a - b) < 1e-6;
}

function more_than(a: number, b: number): boolean {
  return a > b + 1e-6;
}

function nextMonth(now: number): number {
  let time = now - now % 60_000;
  const name = MONTH.format(now);
  for (const step of [86_400_000, 3_600_000, 60_000]) {
    while (MONTH.format(time + step) === name) time += step;
  }
  return time + 60_000;
}

describe("budgets equal their model (contract 14) [BUD-1]", () => {
  it(
    `over ${SEEDS} seeds of ${OPERATIONS} random operations each, through lost servers and two clock changes [BUD-1]`,
    async () => {
      for (let seed = 1; seed <= SEEDS; seed++) await compare(seed);
    },
    SEEDS * 120_000,
  );
});

interface World {
  app: App;
  clock: TestClock;
  model: Model;
  chance: () => number;
  pick: <T>(list: readonly T[]) => T;
  workers: { id: string; departments: string[] }[];
  targets: string[];
  budgets: Set<string>;
  admission: Admission;
}

async function compare(seed: number): Promise<void> {
  const clock = new TestClock("2026-03-20T08:00:00Z");
  await using app = await openApp({ clock, inMemory: true, config: { scheduler: { time_zone: ZONE } } });
  await Promise.all(app.server.stages.map((stage) => stage.stop()));
  const chance = createRandom(seed);
  const pick = <T>(list: readonly T[]): T => list[Math.floor(chance() * list.length)] as T;
  const world: World = {
    app,
    clock,
    chance,
    pick,
    model: new Model(),
    budgets: new Set(),
    ...await people(app),
  };
  for (let step = 0; step < OPERATIONS; step++) {
    const dice = chance();
    const label = `seed ${seed} step ${step}`;
    const run = pick([...world.model.runs.keys()]);
    if (dice < 0.08) await changeBudgets(world);
    else if (dice < 0.45) await tryRun(world, label);
    else if (dice < 0.55 && run !== undefined) await report(world, run);
    else if (dice < 0.78 && run !== undefined) await end(world, run, chance() < 0.2);
    else if (dice < 0.82 && run !== undefined) await toggleWaiting(world, run);
    else if (dice < 0.83) {
      // The server dies: open runs are lost with their reservations.
      for (const id of [...world.model.runs.keys()]) await end(world, id, true);
      world.admission = admissionOf(app);
    } else clock.advance(pick(STEPS_MS));
    if (step % 20 === 0 || step === OPERATIONS - 1) await agree(world, label);
  }
}

function admissionOf({ server }: App): Admission {
  const { db, engines, paths, timeZone } = server.parts;
  return new Admission({ db, engines, paths, timeZone, maxRunsPerHour: 1_000_000 });
}

async function people(app: App): Promise<Pick<World, "workers" | "targets" | "admission">> {
  const root = await app.call("POST /api/departments", { name: "All" });
  const [lab, shop] = [
    await app.call("POST /api/departments", { name: "Lab", parent_id: root.id }),
    await app.call("POST /api/departments", { name: "Shop", parent_id: root.id }),
  ];
  const workers = [];
  for (const [name, inside] of [["a", [lab]], ["b", [lab, shop]], ["c", []]] as const) {
    const departments = inside.map(({ id }) => id as string);
    const { id } = await app.call("POST /api/workers", { name, departments });
    workers.push({
      id: id as string,
      departments: departments.length === 0 ? [] : [...departments, root.id],
    });
  }
  const targets = [
    "global",
    "engine:echo",
    "session:cli:one",
    "session:cli:two",
    ...[root, lab, shop].map(({ id }) => `department:${id}`),
    ...workers.map(({ id }) => `worker:${id}`),
  ];
  return { workers, targets, admission: admissionOf(app) };
}

async function changeBudgets({ app, pick, chance, budgets, targets }: World): Promise<void> {
  const { api } = app.server;
  const id = pick([...budgets]);
  const dice = chance();
  if (id === undefined || dice < 0.4 && budgets.size < 8) {
    const unit = pick(["runs", "tokens", "minutes", "usd"] as const);
    const limit = pick([0, 1, 3, 10, 40]) * { runs: 1, tokens: 100, minutes: 20, usd: 0.5 }[unit];
    const period = pick(["5h", "24h", "7d", "month", "total"] as const);
    const input = {
      name: createId(),
      target: pick(targets),
      unit,
      limit,
      period,
      soft: 80,
      action: "hold" as const,
    };
    budgets.add(parseJson((await api.budget.create(CALL, input)).json).id);
  } else if (dice < 0.6) {
    await api.budget.update(CALL, id, {
      limit: pick([0, 2, 5, 50, 500]),
      action: pick(["hold", "stop"] as const),
    });
  } else if (dice < 0.8) {
    await api.budget.lift(CALL, id, { for_ms: pick([0, 60_000, 7_200_000]) });
  } else {
    await api.budget.delete(CALL, id);
    budgets.delete(id);
  }
}

async function listed({ app }: World): Promise<Budget[]> {
  const page = await app.server.api.budget.list({ page: 1, page_size: 100 });
  return parseJson(page.json).sort((a, b) => a.id < b.id ? -1 : 1);
}

async function tryRun(world: World, label: string): Promise<void> {
  const { app, clock, model, pick, admission } = world;
  const now = clock.now();
  const worker = pick([...world.workers, { id: COORDINATOR, departments: [] }]);
  const session_key = pick(["cli:one", "cli:two"]);
  const task: WaitingTask = {
    id: createId(),
    worker_id: worker.id,
    worker_name: "w",
    work_dir: "/tmp",
    engine: "",
    message_id: "m",
    session_key,
    attempt: 0,
    due_at: now,
    type: "immediate",
    cron: "",
    time_zone: "",
    deliver_to: "",
    verify: "null",
    held: "",
    held_until: null,
    reason: "",
    runs_on: "[]",
    home: "",
    gated: 0,
    lane: "",
    has_repo: 0,
    tree_id: null,
    boxed: 0,
    admin: 0,
    patient: 0,
    secret: 0,
    fallback: 0,
    acted_engine: "",
    unusable_engines: "[]",
    env_names: "[]",
    mcp: "{}",
    has_skills: 0,
    has_commands: 0,
  };
  const targets = [
    "global",
    `worker:${worker.id}`,
    `session:${session_key}`,
    "engine:echo",
    ...worker.departments.map((id) => `department:${id}`),
  ];
  const expected = model.expected(worker.id);
  const holding = (await listed(world)).filter((budget) => {
    if (!targets.includes(budget.target) || (budget.lifted_until ?? 0) > now) return false;
    const { counted, reserved } = model.open(budget, now);
    const sum = model.settled(budget, now) + counted + reserved;
    return !model.mayStart(budget, sum, model.amount(expected, budget.unit));
  });
  const round = await admission.startRound(now);
  const verdict = worker.id === COORDINATOR
    ? await round.judgeCoordinator({ session_key, engine: "echo" })
    : await round.judge(task);
  const [first] = holding;
  if (first !== undefined) {
    expect(verdict.block?.held, label).toBe(`budget:${first.id}`);
    const until = model.until(first, now, model.amount(expected, first.unit));
    expect(verdict.block?.until, `${label}: until ${JSON.stringify(first)}`).toBe(until);
    return;
  }
  expect(verdict.block, label).toBeNull();
  if (verdict.block !== null) return;
  expect([...verdict.reservation.targets].sort(), label).toEqual([...new Set(targets)].sort());
  const id = createId();
  const identity = { execution_id: id, worker_id: worker.id, task_id: task.id, message_id: "m", session_key };
  const started = { ...identity, engine: "echo", attempt: 1, run_id: "", created_at: now };
  await app.db.write([
    ...(worker.id === COORDINATOR ? [insertBeeRun(started)] : [
      insertExecution({ ...started, fallback_from: "", worker_name: "w", session_id: "", instruction: "x" }),
      ...startExecution(id, now),
    ]),
    insertReservation(id, verdict.reservation.targets, verdict.reservation.expected),
  ]);
  // Units without a budget are not checked.
  const { tokens, ms, nano_usd } = verdict.reservation.expected;
  model.runs.set(id, {
    targets,
    worker: worker.id,
    expected: { tokens, ms, usd: nano_usd / 1e9 },
    counted: { tokens: 0, ms: 0, usd: 0 },
    startedAt: now,
    endedAt: null,
    waitedMs: 0,
    waitingSince: null,
  });
}

async function toggleWaiting({ app, model, clock }: World, id: string): Promise<void> {
  const run = model.runs.get(id);
  if (run === undefined) return;
  const now = clock.now();
  const waits = run.waitingSince === null;
  if (run.waitingSince !== null) run.waitedMs += now - run.waitingSince;
  run.waitingSince = waits ? now : null;
  await app.db.write([updateReservationWait(id, waits, now)]);
}

async function report({ app, model, pick }: World, id: string): Promise<void> {
  const run = model.runs.get(id);
  if (run === undefined) return;
  run.counted = {
    ...run.counted,
    tokens: run.counted.tokens + pick([10, 100, 333]),
    usd: run.counted.usd + pick([0.001, 0.1]),
  };
  const { tokens, usd } = run.counted;
  await app.db.write([updateReservationUse(id, { input_tokens: tokens, output_tokens: 0, cost_usd: usd })]);
}

async function end({ app, model, clock, pick }: World, id: string, lost: boolean): Promise<void> {
  const run = model.runs.get(id);
  if (run === undefined) return;
  const now = clock.now();
  if (!lost) {
    run.counted = {
      ...run.counted,
      tokens: run.counted.tokens + pick([0, 50, 120]),
      usd: run.counted.usd + pick([0, 0.01]),
    };
  }
  run.counted.ms = lasted(run, now);
  run.endedAt = now;
  model.runs.delete(id);
  model.ended.push(run);
  const { tokens, usd } = run.counted;
  // A lost run reports no usage at its end.
  const usage = lost
    ? { input_tokens: null, output_tokens: null, cost_usd: null }
    : { input_tokens: 0, output_tokens: tokens, cost_usd: usd };
  const how = {
    status: lost ? "failed" as const : "completed" as const,
    error: "",
    failure: lost ? "server_lost" as const : "" as const,
    usage,
  };
  const { won } = await app.db.write(
    run.worker === COORDINATOR
      ? finishBeeRun(id, { ...how, reason: "", reply: "", task_count: 0 }, now)
      : finishExecution(id, { ...how, session_id: "", result: "", exit_code: null }, now),
  );
  expect(won).toBe(true);
}

async function agree(world: World, label: string): Promise<void> {
  const { model, clock, app } = world;
  const now = clock.now();
  for (const budget of await listed(world)) {
    const { counted, reserved } = model.open(budget, now);
    const used = model.settled(budget, now) + counted;
    const text = `${label}: ${JSON.stringify(budget)}`;
    expect(budget.used, text).toBeCloseTo(used, 6);
    expect(budget.reserved, text).toBeCloseTo(reserved, 6);
    const sum = used + reserved;
    const hard = more_than(sum, budget.limit) || close(sum, budget.limit);
    const soft = more_than(sum, budget.limit * 0.8) || close(sum, budget.limit * 0.8);
    expect(budget.state, text).toBe(hard ? "hard" : soft ? "soft" : "ok");
    if (budget.period === "month") expect(budget.resets_at, text).toBe(nextMonth(now));
  }
  // The sums equal a recount from the executions.
  const [recount] = await app.db.read(
    `select count(*) as runs, coalesce(sum(coalesce(input_tokens, 0) + coalesce(output_tokens, 0)), 0) as tokens,
      coalesce(sum(cast(round(coalesce(cost_usd, 0) * 1e9) as integer)), 0) as nano_usd
    from (
      select input_tokens, output_tokens, cost_usd from execution where status in ('completed', 'failed')
      union all
      select input_tokens, output_tokens, cost_usd from bee_run where status in ('completed', 'failed'))`,
  );
  const [latest] = await app.db.read(
    "select runs, tokens, nano_usd from ledger where target = 'global' order by at desc, runs desc limit 1",
  );
  if (latest !== undefined) expect({ ...latest }, label).toEqual({ ...recount });
}
