import { describe, expect, it, vi } from "vitest";
import type { Call } from "../../src/api/call/call.ts";
import type { Question } from "../../src/domain/work/question.ts";
import { ServiceError } from "../../src/domain/call/error.ts";
import { parseJson } from "../../src/domain/call/json.ts";
import { type App, openApp } from "../harness/service/app.ts";
import { buildCall, type ClaimedRun, claimRun, endClaimedRun } from "../harness/fakes/claimed.ts";
import { TestClock } from "../harness/clock.ts";
import { createRandom } from "../harness/model/schedule.ts";
import { createTask } from "../harness/service/runner.ts";

// SVC_TEST_RACES=1000 runs a thousand races of each kind.
const RACES = Number(Deno.env.get("SVC_TEST_RACES") ?? 40);
const OFFSET_MAX_MS = 5;
const LIFE_MS = 60_000;

const PERSON: Call = {
  caller: { subject: "user:test", scopes: ["*:*"], run: null, person: null },
  findAccessEnd: () => Promise.resolve(null),
  idempotency: null,
  trace: "",
};

/** A run without a process, and its open question. */
interface Bench {
  app: App;
  clock: TestClock;
  run: ClaimedRun;
  question: Question;
}

interface Result {
  question: Question;
  /** Number of accepted answers (status 200). */
  taken: string[];
  /** How often the agent got the answer: read in its run, or delivered by a task. */
  learned: number;
}

function later<T>(ms: number, work: () => Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => setTimeout(() => work().then(resolve, reject), ms));
}

/** Answers as a user. Returns null if another answer was first. */
async function answer({ app, question }: Bench, words: string): Promise<string | null> {
  try {
    await app.server.api.question.answer(PERSON, question.id, words);
    return words;
  } catch (error) {
    if (error instanceof ServiceError && error.code === "conflict") return null;
    throw error;
  }
}

/** Polls as the agent until it has an answer or its run has ended; returns whether it got one. */
async function look(bench: Bench): Promise<boolean> {
  const { app, run, question } = bench;
  const call = await buildCall(app.db, run).catch(() => null);
  if (call === null) return false;
  const limits = { timeoutMs: 0, signal: new AbortController().signal };
  const { json } = await app.server.api.question.wait(call, question.id, limits);
  const seen = parseJson(json);
  return seen.status === "answered" && seen.seen_at !== null && !await isBrought(app, question.id);
}

async function isBrought(app: App, id: string): Promise<boolean> {
  const row = await app.db.first<{ tasks: number }>(
    "select count(*) as tasks from question join task on task.id = answer_task_id where question.id = ?",
    [id],
  );
  return row?.tasks === 1;
}

type Race = (bench: Bench, offset: () => number) => Promise<{ taken: (string | null)[]; seen?: boolean }>;

/** Runs a race `RACES` times with random offsets; returns the results. */
async function runRaces(seed: number, race: Race, fallback = ""): Promise<Result[]> {
  const clock = new TestClock();
  await using app = await openApp({ clock, inMemory: true });
  const { db, clock: now } = app.server.parts;
  await Promise.all(app.server.stages.filter(({ name }) => name !== "question").map((stage) => stage.stop()));
  const chance = createRandom(seed);
  const offset = () => Math.floor(chance() * (OFFSET_MAX_MS + 1));
  const worker = await app.call("POST /api/workers", { name: "w" });
  const results: Result[] = [];
  for (let i = 0; i < RACES; i++) {
    const task = await createTask(app, worker.id, "x");
    const run = await claimRun(db, task, now.now());
    const asked = await app.server.api.question.ask(await buildCall(db, run), {
      message_id: "script",
      text: `Which ${i}?`,
      options: [],
      timeout_ms: LIFE_MS,
      ...(fallback === "" ? {} : { default: fallback }),
    });
    const bench = { app, clock, run, question: parseJson(asked.json) };
    const { taken, seen = false } = await race(bench, offset);
    await endClaimedRun(db, run, "completed", now.now());
    await app.runStage("question");
    const question = await app.call(`GET /api/questions/${bench.question.id}`);
    const learned = Number(seen) + Number(await isBrought(app, question.id));
    results.push({ question, taken: taken.filter((one) => one !== null), learned });
  }
  const made = await db.first<{ tasks: number }>("select count(*) as tasks from task");
  const brought = await db.first<{ tasks: number }>(
    "select count(answer_task_id) as tasks from question",
  );
  expect(made?.tasks, "no task beside those that brought answers").toBe(RACES + (brought?.tasks ?? 0));
  return results;
}

/** Returns whether both outcomes happened. A race with only one outcome proves nothing. */
function expectBothWays(results: Result[], which: (result: Result) => boolean): void {
  if (RACES < 200) return;
  const ways = results.filter(which).length;
  expect(ways).toBeGreaterThan(0);
  expect(ways).toBeLessThan(results.length);
}

vi.setConfig({ testTimeout: 600_000 + RACES * 3_000 });

describe(`exactly one answer is stored, and the agent gets it once: ${RACES} races each [QST-1]`, () => {
  it("between two answers [QST-1]", async () => {
    const results = await runRaces(1, async (bench, offset) => ({
      taken: await Promise.all([
        later(offset(), () => answer(bench, "one")),
        later(offset(), () => answer(bench, "two")),
      ]),
    }));
    for (const { question, taken, learned } of results) {
      expect(taken).toEqual([question.answer]);
      expect([question.status, learned]).toEqual(["answered", 1]);
    }
    expectBothWays(results, ({ question }) => question.answer === "one");
  });

  it("between an answer and the deadline, with and without a default [QST-1]", async () => {
    for (const fallback of ["", "default"]) {
      const results = await runRaces(2, async (bench, offset) => {
        const [taken] = await Promise.all([
          later(offset(), () => answer(bench, "in time")),
          later(offset(), async () => {
            bench.clock.advance(LIFE_MS);
            await bench.app.runStage("question");
          }),
        ]);
        return { taken: [taken] };
      }, fallback);
      for (const { question, taken, learned } of results) {
        const wanted = taken.length === 1
          ? ["answered", "in time", "user:test", 1]
          : fallback === ""
          ? ["expired", "", "", 0]
          : ["answered", "default", "default", 1];
        expect([question.status, question.answer, question.answered_by, learned]).toEqual(wanted);
      }
      expectBothWays(results, ({ taken }) => taken.length === 1);
    }
  });

  it("between an answer and the end of the run that asked [QST-1]", async () => {
    const results = await runRaces(3, async (bench, offset) => {
      const { app, run, clock } = bench;
      const [taken] = await Promise.all([
        later(offset(), () => answer(bench, "yes")),
        later(offset(), () => endClaimedRun(app.db, run, "completed", clock.now())),
      ]);
      return { taken: [taken] };
    });
    for (const { taken, learned } of results) expect([taken, learned]).toEqual([["yes"], 1]);
  });

  it("between an answer, the agent's poll, and the end of its run in any way [QST-1]", async () => {
    for (const how of ["completed", "failed", "stopped"] as const) {
      const results = await runRaces(4, async (bench, offset) => {
        const { app, run, clock } = bench;
        const [taken, ...seen] = await Promise.all([
          answer(bench, "yes"),
          later(offset(), () => look(bench)),
          later(offset(), () => look(bench)),
          later(offset(), () => endClaimedRun(app.db, run, how, clock.now())).then(() => false),
        ]);
        return { taken: [taken], seen: seen.includes(true) };
      });
      for (const { taken, learned, question } of results) {
        expect([taken, learned, question.seen_at !== null]).toEqual([["yes"], 1, true]);
      }
    }
  });
});
