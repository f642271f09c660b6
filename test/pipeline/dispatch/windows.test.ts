import { describe, expect, it } from "vitest";
import { type App, openApp } from "../../harness/service/app.ts";
import { TestClock } from "../../harness/clock.ts";
import { waitUntil } from "../../harness/wait.ts";
import { findReserveBlock } from "../../../src/pipeline/dispatch/admission.ts";

const FAKE_CLAUDE = new URL("../../harness/fakes/fake_claude.sh", import.meta.url).pathname;
const HOUR_MS = 3_600_000;

function openClaude(clock: TestClock, limits = {}): Promise<App> {
  return openApp({
    clock,
    config: {
      limits,
      engines: {
        default: "claude",
        claude: { command: FAKE_CLAUDE, env: { ANTHROPIC_API_KEY: "x" }, reserve: "20%" },
      },
    },
  });
}

async function setUp(app: App) {
  const worker = await app.call("POST /api/workers", { name: `Ada ${crypto.randomUUID()}` });
  const session = await app.call("POST /api/local/sessions", { worker_id: worker.id });
  const say = async (content: string) => {
    const { message_id } = await app.call(`POST /api/local/sessions/${session.id}/messages`, { content });
    return message_id as string;
  };
  const statusOf = async (message_id: string) =>
    (await app.call(`GET /api/tasks?message_id=${message_id}`))[0];
  return { worker, say, statusOf };
}

describe("the windows of a provider (contract 14)", () => {
  it("block the engine for all work after a refusal, until engine lift", async () => {
    const clock = new TestClock(Date.now());
    await using app = await openClaude(clock);
    const { say, statusOf, worker } = await setUp(app);
    const first = await say("limit 3600");
    await app.until("engine.limited");
    const held = await statusOf(first);
    expect(held).toMatchObject({ status: "pending", held_by: { kind: "engine", id: "claude" } });
    const parked = await app.call("GET /api/engines/claude");
    expect(parked).toMatchObject({ live_usage: true, limited_until: held.held_by.until });
    expect(parked.windows).toMatchObject([{ name: "five_hour", utilization: 1 }]);
    await Deno.writeTextFile(`${worker.work_dir}/free`, "");
    expect(await app.call("POST /api/engines/claude/lift")).toMatchObject({
      limited_until: null,
      windows: [],
    });
    await app.settle();
    expect(await statusOf(first)).toMatchObject({ status: "completed", held_by: null });
  });
});

describe("a runaway (contract 14, limits.max_runs_per_hour)", () => {
  it("blocks a worker with one notice, until an hour has freed a run", async () => {
    const clock = new TestClock(Date.now());
    await using app = await openClaude(clock, { max_runs_per_hour: 3 });
    const { worker } = await setUp(app);
    const give = (message_id: string) =>
      app.call("POST /api/tasks", { message_id, worker_id: worker.id, instruction: "ok", type: "immediate" });
    await give("m0");
    await app.settle();
    const firstEnd = (await app.call("GET /api/executions"))[0].completed_at;
    clock.advance(60_000);
    const tasks = [];
    for (let i = 1; i < 5; i++) tasks.push(await give(`m${i}`));
    const waiting = async () =>
      (await app.call(`GET /api/tasks?worker_id=${worker.id}&status=pending`)) as {
        held_by: object | null;
      }[];
    await waitUntil("two wait", async () => {
      const rows = await waiting();
      return rows.length === 2 && rows.every(({ held_by }) => held_by !== null);
    });
    expect(await waiting()).toMatchObject([0, 1].map(() => ({
      held_by: { kind: "run_limit", id: `worker:${worker.id}`, until: firstEnd + HOUR_MS },
      reason: expect.stringMatching(/^its worker has had 3 runs within an hour/),
    })));
    await app.until("run_limit.met");
    clock.advance(firstEnd + HOUR_MS - clock.now());
    await waitUntil("one has run", async () => (await waiting()).length === 1);
    const told = await app.db.read("select data from journal where kind = 'run_limit.met'");
    expect(told).toHaveLength(1);
  });
});

describe("findReserveBlock", () => {
  const window = (utilization: number, resets_at: number | null, engine = "claude") => ({
    ...{ engine, name: "five_hour", utilization, resets_at, seen_at: 0 },
  });

  it.each([
    ["no reserve", [window(1, 2_000)], 0, null],
    ["a window at the reserve", [window(0.8, 2_000)], 0.2, null],
    ["a window above the reserve", [window(0.81, 2_000)], 0.2, 2_000],
    ["an expired window", [window(1, 1_000)], 0.2, null],
    ["a window of another engine", [window(1, 2_000, "codex")], 0.2, null],
    ["two windows above the reserve", [window(1, 2_000), window(1, 3_000)], 0.2, 3_000],
  ])("%s", (_name, windows, reserve, until) => {
    expect(findReserveBlock(windows, { engine: "claude", reserve }, 1_000)?.until ?? null).toBe(until);
  });

  it("blocks without an end when a window has none", () => {
    const block = findReserveBlock(
      [window(1, 2_000), window(1, null)],
      { engine: "claude", reserve: 0.2 },
      1_000,
    );
    expect(block).toMatchObject({ held: "reserve:claude", until: null, whom: { kind: "patient" } });
    expect(block?.reason).toBe(
      "claude has used 100 % of its window five_hour, and the rest is reserved for people",
    );
  });
});
