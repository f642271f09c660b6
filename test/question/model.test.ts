import { describe, expect, it, vi } from "vitest";
import type { Call } from "../../src/api/call/call.ts";
import { ServiceError } from "../../src/domain/call/error.ts";
import { parseJson } from "../../src/domain/call/json.ts";
import { findTask } from "../../src/store/work/task.ts";
import { type App, openApp } from "../harness/service/app.ts";
import {
  buildCall,
  type ClaimedRun,
  claimRun,
  endClaimedRun,
  type RunEnding,
} from "../harness/fakes/claimed.ts";
import { TestClock } from "../harness/clock.ts";
import { createRandom } from "../harness/model/schedule.ts";

// CI runs 25 seeds of 2,000; locally a part of one seed finds most faults.
const SEEDS = Number(Deno.env.get("SVC_TEST_SEEDS") ?? 1);
const OPERATIONS = Deno.env.has("SVC_TEST_SEEDS") ? 2_000 : 500;
const MAX_CHAIN_DEPTH = 2;
const RUN_QUESTIONS_MAX = 20;
const OPEN_QUESTIONS_MAX = 100;
const SESSIONS = ["cli:one", "cli:two"];
const TEXTS = ["Which?", "When?", "Really?"];

/** The expected state of a question. */
interface ExpectedQuestion {
  id: string;
  session: string;
  worker: string;
  task: string;
  run: string;
  text: string;
  fallback: string;
  status: string;
  answer: string;
  by: string;
  expiresAt: number;
  seen: boolean;
  brought: boolean;
}

interface Run extends ClaimedRun {
  /** The number of questions that it asked. */
  asked: number;
}

/** The state machine of contract 12. The database has to agree with it. */
class Model {
  readonly questions = new Map<string, ExpectedQuestion>();
  readonly runs = new Map<string, Run>();

  /** Returns the question that a run's request leads to: an equal one, a new one (null), or a refusal. */
  ask(run: Run, text: string, fallback: string): ExpectedQuestion | null | "refused" {
    if (++run.asked > RUN_QUESTIONS_MAX) return run.asked--, "refused";
    if (fallback !== "" && run.depth >= MAX_CHAIN_DEPTH) return "refused";
    const equal =
      this.all((one) =>
        one.task === run.task && one.status === "open" && one.text === text && one.fallback === fallback
      )[0];
    if (equal !== undefined) {
      equal.run = run.id;
      return equal;
    }
    const open = this.all((one) => one.session === run.session && one.status === "open").length;
    return open >= OPEN_QUESTIONS_MAX ? "refused" : null;
  }

  answer(id: string, answer: string, by: string, now: number): boolean {
    const one = this.questions.get(id);
    if (one?.status !== "open" || by !== "default" && one.expiresAt <= now) return false;
    Object.assign(one, { status: "answered", answer, by });
    this.#bring(one);
    return true;
  }

  cancel(id: string): boolean {
    const one = this.questions.get(id);
    if (one?.status !== "open") return false;
    one.status = "cancelled";
    return true;
  }

  /** Marks the question as read by the run. */
  see(one: ExpectedQuestion, run: Run): void {
    if (one.status === "answered" && one.run === run.id) one.seen = true;
  }

  tick(now: number): void {
    for (const one of this.all(({ status, expiresAt }) => status === "open" && expiresAt <= now)) {
      if (one.fallback === "") one.status = "expired";
      else this.answer(one.id, one.fallback, "default", now);
    }
  }

  end(id: string, how: RunEnding): void {
    this.runs.delete(id);
    if (how === "cancelled") return this.withdraw((one) => one.run === id);
    for (const one of this.all((one) => one.run === id && one.status === "answered" && !one.brought)) {
      // A lost run may also lose what it read.
      if (how === "lost") one.seen = false;
      this.#bring(one);
    }
  }

  withdraw(which: (one: ExpectedQuestion) => boolean): void {
    for (const one of this.all(which)) {
      if (one.status === "open") one.status = "cancelled";
      else if (one.status === "answered") one.seen = true;
    }
  }

  all(which: (one: ExpectedQuestion) => boolean): ExpectedQuestion[] {
    return [...this.questions.values()].filter(which);
  }

  // No run waits for the answer, so it becomes a task.
  #bring(one: ExpectedQuestion): void {
    if (one.task === "" || one.seen || this.runs.has(one.run)) return;
    one.seen = one.brought = true;
  }
}

vi.setConfig({ testTimeout: 60_000 + SEEDS * 600_000 });

describe("the state machine of a question equals its model (contract 12) [QST-1]", () => {
  it(`over ${SEEDS} seeds of ${OPERATIONS} random operations each, with restarts`, async () => {
    for (let seed = 1; seed <= SEEDS; seed++) await new World(seed).compare();
  });
});

const CALL: Call = {
  caller: { subject: "user:test", scopes: ["*:*"], run: null, person: null },
  findAccessEnd: () => Promise.resolve(null),
  idempotency: null,
  trace: "",
};

/**
 * A service whose stages are stopped, except the one of questions: the test does their work, step by step.
 */
class World {
  readonly #chance: () => number;
  readonly #seed: number;
  readonly #model = new Model();
  readonly #clock = new TestClock("2026-01-05T08:00:00Z");
  #app!: App;
  #workers: string[] = [];
  #dir = "";

  constructor(seed: number) {
    this.#seed = seed;
    this.#chance = createRandom(seed);
  }

  async compare(): Promise<void> {
    this.#dir = await Deno.makeTempDir({ prefix: "svc-test-" });
    try {
      await this.#open();
      for (let i = 0; i < 3; i++) await this.#hire();
      for (let step = 0; step < OPERATIONS; step++) {
        const label = `seed ${this.#seed} step ${step}`;
        await this.#step(label);
        if (step % 50 === 0 || step === OPERATIONS - 1) await this.#agree(label);
      }
    } finally {
      await this.#app.stop();
      await Deno.remove(this.#dir, { recursive: true });
    }
  }

  get #api() {
    return this.#app.server.api;
  }

  async #open(): Promise<void> {
    const config = { limits: { max_chain_depth: MAX_CHAIN_DEPTH } };
    this.#app = await openApp({ clock: this.#clock, dataDir: this.#dir, config });
    const { server } = this.#app;
    await Promise.all(server.stages.filter(({ name }) => name !== "question").map((stage) => stage.stop()));
    server.parts.interruptRun = (id) => this.#finish(id, "cancelled");
  }

  async #hire(): Promise<void> {
    const lists = {
      engine_args: {},
      departments: [],
      scopes: [],
      verify: null,
      runs_on: [],
      home: "" as const,
      resources: null,
      isolation: null,
      repo: null,
      mcp: {},
      skills: [],
      gateways: [],
      env: {},
    };
    const texts = { name: "w", description: "", memory: "", constraints: "", engine: "", work_dir: "/tmp" };
    const made = await this.#api.worker.create(CALL, { ...texts, ...lists, fallback: false, paused: false });
    this.#workers.push(parseJson(made.json).id);
  }

  #pick<T>(list: readonly T[]): T {
    return list[Math.floor(this.#chance() * list.length)] as T;
  }

  async #step(label: string): Promise<void> {
    const dice = this.#chance();
    const run = this.#pick([...this.#model.runs.values()]) as Run | undefined;
    // Prefers questions that can still change.
    const open = this.#model.all(({ status }) => status === "open");
    const one = this.#pick(
      this.#chance() < 0.7 && open.length > 0 ? open : [...this.#model.questions.values()],
    ) as ExpectedQuestion | undefined;
    if (dice < 0.15 || run === undefined) await this.#start();
    else if (dice < 0.40 || one === undefined) await this.#ask(run, label);
    else if (dice < 0.55) await this.#answer(one, label);
    else if (dice < 0.60) {
      expect(await done(() => this.#api.question.cancel(CALL, one.id)), label).toBe(
        this.#model.cancel(one.id),
      );
    } else if (dice < 0.70) await this.#see(run);
    else if (dice < 0.85) {
      await this.#finish(
        run.id,
        this.#pick(["completed", "completed", "failed", "lost", "stopped", "cancelled"]),
      );
    } else if (dice < 0.87) {
      const session = this.#pick(SESSIONS);
      this.#model.withdraw((question) => question.session === session);
      await this.#api.session.clear(CALL, session);
    } else if (dice < 0.88) {
      const worker = this.#pick(this.#workers);
      this.#model.withdraw((question) => question.worker === worker);
      await this.#api.worker.delete(CALL, worker, false);
      this.#workers = this.#workers.filter((other) => other !== worker);
      await this.#hire();
    } else if (dice < 0.89) await this.#restart();
    else await this.#advance();
  }

  /** Starts a run of a pending task, or of a new one. */
  async #start(): Promise<void> {
    const { db } = this.#app;
    const waiting = await db.first<{ id: string }>(
      "select id from task where status = 'pending' order by id desc",
    );
    const id = waiting !== null && this.#chance() < 0.6 ? waiting.id : await this.#give();
    const run = await claimRun(db, id, this.#clock.now());
    this.#model.runs.set(run.id, { ...run, asked: 0 });
  }

  async #give(): Promise<string> {
    const [, message_id = ""] = this.#pick(SESSIONS).split(":");
    const task = { worker_id: this.#pick(this.#workers), instruction: "x", type: "immediate" as const };
    return parseJson((await this.#api.task.create(CALL, { ...task, message_id })).json).id;
  }

  async #ask(run: Run, label: string): Promise<void> {
    const text = this.#pick(TEXTS);
    const fallback = this.#pick(["", "", "Red"]);
    const timeout_ms = this.#pick([1_000, 60_000, 3_600_000]);
    const [, message_id = ""] = run.session.split(":");
    const expected = this.#model.ask(run, text, fallback);
    const body = {
      message_id,
      text,
      options: [],
      timeout_ms,
      ...(fallback === "" ? {} : { default: fallback }),
    };
    const asked = await this.#api.question.ask(await buildCall(this.#app.db, run), body)
      .then(({ json }) => parseJson(json), (error) => {
        if (error instanceof ServiceError) return null;
        throw error;
      });
    if (asked === null) return expect("refused", label).toBe(expected);
    if (expected !== null) {
      return expect(asked.id, label).toBe(expected === "refused" ? expected : expected.id);
    }
    this.#model.questions.set(asked.id, {
      id: asked.id,
      session: run.session,
      worker: run.worker,
      task: run.task,
      run: run.id,
      text,
      fallback,
      status: "open",
      answer: "",
      by: "",
      expiresAt: this.#clock.now() + timeout_ms,
      seen: false,
      brought: false,
    });
  }

  async #answer({ id }: ExpectedQuestion, label: string): Promise<void> {
    const words = this.#pick(["yes", "no"]);
    const won = await done(() => this.#api.question.answer(CALL, id, words));
    expect(won, label).toBe(this.#model.answer(id, words, "user:test", this.#clock.now()));
  }

  async #see(run: Run): Promise<void> {
    const own = this.#pick(this.#model.all((one) => one.run === run.id)) as ExpectedQuestion | undefined;
    if (own === undefined) return;
    const limits = { timeoutMs: 0, signal: new AbortController().signal };
    await this.#api.question.wait(await buildCall(this.#app.db, run), own.id, limits);
    this.#model.see(own, run);
  }

  async #finish(id: string, wish: RunEnding): Promise<void> {
    const run = this.#model.runs.get(id);
    if (run === undefined) return;
    const { db } = this.#app;
    const task = await findTask(db, run.task);
    // A task that was cancelled meanwhile ends as cancelled.
    const how = task?.status === "cancelled" ? "cancelled" : wish;
    expect(await endClaimedRun(db, run, how, this.#clock.now())).toBe(true);
    expect(await endClaimedRun(db, run, how, this.#clock.now()), "a second outcome").toBe(false);
    this.#model.end(id, how);
  }

  /** Simulates kill -9: the next start finds every run lost. */
  async #restart(): Promise<void> {
    const cancelled = new Set<string>();
    for (const run of this.#model.runs.values()) {
      if ((await findTask(this.#app.db, run.task))?.status === "cancelled") cancelled.add(run.id);
    }
    await this.#app.stop();
    await this.#open();
    for (const id of [...this.#model.runs.keys()]) {
      this.#model.end(id, cancelled.has(id) ? "cancelled" : "lost");
    }
    this.#model.tick(this.#clock.now());
    await this.#app.runStage("question");
  }

  async #advance(): Promise<void> {
    this.#clock.advance(this.#pick([100, 900, 30_000, 600_000]));
    await this.#app.runStage("question");
    this.#model.tick(this.#clock.now());
  }

  async #agree(label: string): Promise<void> {
    const { db } = this.#app;
    const rows = await db.read(
      `select id, execution_id as run, status, answer, answered_by as by, seen_at is not null as seen,
        answer_task_id is not null as brought
      from question
      order by id`,
    );
    const expected = this.#model.all(() => true).map(({ id, run, status, answer, by, seen, brought }) => ({
      id,
      run,
      status,
      answer,
      by,
      seen: Number(seen),
      brought: Number(brought),
    })).sort((a, b) => a.id < b.id ? -1 : 1);
    expect(rows.map((row) => ({ ...row })), label).toEqual(expected);
    const made = await db.read(
      `select question.id
      from question
      join task on task.id = answer_task_id and task.worker_id = question.worker_id
        and task.session_key = question.session_key and instr(task.instruction, 'The answer: ' || answer) > 0
      order by question.id`,
    );
    const brought = expected.filter((one) => one.brought === 1).map(({ id }) => ({ id }));
    expect(made.map((row) => ({ ...row })), label).toEqual(brought);
    const twice = await db.read(
      "select answer_task_id from question group by 1 having count(*) > 1 and 1 is not null",
    );
    expect(twice.filter((row) => row.answer_task_id !== null), label).toEqual([]);
  }
}

async function done(work: () => Promise<unknown>): Promise<boolean> {
  try {
    await work();
    return true;
  } catch (error) {
    if (error instanceof ServiceError && error.code === "conflict") return false;
    throw error;
  }
}
