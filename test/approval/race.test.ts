import { expect, it, vi } from "vitest";
import type { Call } from "../../src/api/call/call.ts";
import { ServiceError } from "../../src/domain/call/error.ts";
import { parseJson } from "../../src/domain/call/json.ts";
import { ALLOW } from "../../src/domain/call/vocabulary.ts";
import { markCancelled } from "../../src/store/work/execution.ts";
import { buildCall, type ClaimedRun, claimRun, endClaimedRun } from "../harness/fakes/claimed.ts";
import { TestClock } from "../harness/clock.ts";
import { createRandom } from "../harness/model/schedule.ts";
import { type App, openApp } from "../harness/service/app.ts";
import { createTask } from "../harness/service/runner.ts";

// SVC_TEST_RACES=1000 runs a thousand races of each kind.
const RACES = Number(Deno.env.get("SVC_TEST_RACES") ?? 60);
const OFFSET_MAX_MS = 5;
const LIFE_MS = 60_000;
const DIGEST = "0".repeat(64);

const PERSON: Call = {
  caller: { subject: "user:test", scopes: ["*:*"], run: null, person: null },
  findAccessEnd: () => Promise.resolve(null),
  idempotency: null,
  trace: "",
};

interface Bench {
  app: App;
  clock: TestClock;
  run: ClaimedRun;
  id: string;
  /** The run's own call, built while it was open. */
  call: Call;
}

function later<T>(ms: number, work: () => Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => setTimeout(() => work().then(resolve, reject), ms));
}

async function answer({ app, id }: Bench, words: string): Promise<boolean> {
  try {
    await app.server.api.question.answer(PERSON, id, words);
    return true;
  } catch (error) {
    if (error instanceof ServiceError && error.code === "conflict") return false;
    throw error;
  }
}

/** Returns whether the engine may run the call now. */
async function take({ app, id, call }: Bench): Promise<boolean> {
  const limits = { timeoutMs: 0, signal: new AbortController().signal };
  const { json } = await app.server.api.approval.wait(call, id, limits);
  return parseJson(json).decision === "allow";
}

/** Ways in which a call ends meanwhile. */
const ENDS: Record<string, (bench: Bench) => Promise<unknown>> = {
  "the time-out": async ({ app, clock }) => {
    clock.advance(LIFE_MS);
    await app.runStage("question");
  },
  "the cancel of its run": async ({ app, run, clock }) => {
    await app.db.write(markCancelled(run.id, "user:test"));
    await endClaimedRun(app.db, run, "cancelled", clock.now());
  },
  "the end of its run": ({ app, run, clock }) => endClaimedRun(app.db, run, "completed", clock.now()),
  "the restart of the service": ({ app, run, clock }) => endClaimedRun(app.db, run, "lost", clock.now()),
  "another answer": (bench) => answer(bench, "Deny"),
  "a withdrawal": ({ app, call, id }) => app.server.api.approval.withdraw(call, id),
};

vi.setConfig({ testTimeout: 300_000 + RACES * 3_000 });

it.each(Object.keys(ENDS))(
  `a call runs only after an allowance that was stored and taken in time, in ${RACES} races with %s [APV-1]`,
  async (name) => {
    const clock = new TestClock();
    await using app = await openApp({ clock, inMemory: true });
    const { db, clock: now } = app.server.parts;
    await Promise.all(
      app.server.stages.filter((stage) => stage.name !== "question").map((stage) => stage.stop()),
    );
    const chance = createRandom(3);
    const offset = () => Math.floor(chance() * (OFFSET_MAX_MS + 1));
    const worker = await app.call("POST /api/workers", { name: "w" });
    const ways = new Set<boolean>();
    for (let i = 0; i < RACES; i++) {
      const run = await claimRun(db, await createTask(app, worker.id, "x"), now.now());
      const call = await buildCall(db, run);
      const input = { tool: "Bash", arguments: `{"n":${i}}`, digest: DIGEST, timeout_ms: LIFE_MS };
      const { id } = parseJson((await app.server.api.approval.request(call, input)).json);
      const bench = { app, clock, run, id, call };
      const [accepted, , ...taken] = await Promise.all([
        later(offset(), () => answer(bench, ALLOW)),
        later(offset(), () => ENDS[name]?.(bench) ?? Promise.resolve()),
        later(offset(), () => take(bench)),
        later(offset(), () => take(bench)),
      ]);
      taken.push(await take(bench));
      const runs = taken.includes(true);
      const question = await app.call(`GET /api/questions/${id}`);
      if (runs) {
        expect([accepted, question.status, question.answer, question.seen_at !== null]).toEqual([
          true,
          "answered",
          "Allow",
          true,
        ]);
      }
      if (!accepted) expect(runs).toBe(false);
      // Once its run has ended, no answer lets the call run, and no question stays open.
      await endClaimedRun(db, run, "completed", now.now());
      const late = await app.call(`GET /api/questions/${id}`);
      expect(late.status).not.toBe("open");
      if (!runs) expect(await take(bench)).toBe(false);
      ways.add(runs);
    }
    const tasks = await db.first<{ tasks: number }>("select count(*) as tasks from task");
    expect(tasks?.tasks, "an answer to a call never becomes a task").toBe(RACES);
    if (RACES >= 200) expect(ways.size).toBe(2);
  },
);

it("an answer after the cancel of its run does not let the call run, although the run has yet to end [APV-1]", async () => {
  await using app = await openApp({ clock: new TestClock(), inMemory: true });
  const { db, clock } = app.server.parts;
  await Promise.all(app.server.stages.map((stage) => stage.stop()));
  const worker = await app.call("POST /api/workers", { name: "w" });
  const run = await claimRun(db, await createTask(app, worker.id, "x"), clock.now());
  const call = await buildCall(db, run);
  const input = { tool: "Bash", arguments: "{}", digest: DIGEST, timeout_ms: LIFE_MS };
  const { id } = parseJson((await app.server.api.approval.request(call, input)).json);
  await db.write(markCancelled(run.id, "user:test"));
  const bench = { app, clock: new TestClock(), run, id, call };
  expect(await answer(bench, ALLOW)).toBe(true);
  expect(await take(bench)).toBe(false);
  expect(parseJson((await app.server.api.approval.request(call, input)).json).decision).toBe("deny");
});
