import { join } from "node:path";
import { expect, it, vi } from "vitest";
import type { Client } from "../../harness/service/client.ts";
import { runScenario } from "../../harness/model/scenario.ts";
import { waitUntil } from "../../harness/wait.ts";

// CI runs fifty kills.
const KILLS = Number(Deno.env.get("SVC_TEST_KILLS") ?? 2);
const SEED = Number(Deno.env.get("SVC_TEST_SEED") ?? Date.now() % 100_000);
const FAKE_CLAUDE = new URL("../../harness/fakes/fake_claude.sh", import.meta.url).pathname;
const HALF = 25;
const RUNS = HALF + 3 * KILLS + 15;
const TOKENS_OF_RUN = 300;
const TOKENS = TOKENS_OF_RUN * (HALF + 10);

vi.setConfig({ testTimeout: 400_000 + KILLS * 60_000 });

it(`50 concurrent runs at two limits with ${KILLS} kills exceed no limit beyond the allowance, and the sums equal a recount (contract 14; seed ${SEED}) [BUD-1]`, () =>
  runScenario({
    seed: SEED,
    env: {
      SVC_ENGINES__CLAUDE__COMMAND: FAKE_CLAUDE,
      SVC_ENGINES__CLAUDE__ENV__ANTHROPIC_API_KEY: "x",
      SVC_LIMITS__MAX_ATTEMPTS: "100",
      SVC_LIMITS__MAX_CONCURRENT_RUNS: String(2 * HALF),
    },
    rounds: KILLS,
    fault: { kind: "kill", afterMs: ({ chance }) => 300 + chance() * 1_500 },
    setup: ({ api }) => createLoad(api),
    action: () => Promise.resolve(),
    restarted: ({ api }) => check(api.call, false),
    check: async ({ api: { call } }) => {
      await waitUntil("nothing runs any more, and both limits are reached", async () => {
        const open = await call("GET /api/executions?status=pending,running");
        const budgets = await call("GET /api/budgets");
        return open.length === 0 && budgets.every(({ state }: { state: string }) => state === "hard");
      }, 120_000);
      await check(call, true);
      const blocked: unknown[] = await call("GET /api/queue?status=pending&page_size=100");
      expect(blocked.length).toBeGreaterThan(0);
    },
  }));

/** Creates two budgets, and workers with more tasks than the budgets allow. */
async function createLoad({ call }: Client): Promise<void> {
  const runs = { name: "runs", target: "engine:fake", unit: "runs", limit: RUNS, period: "total" };
  const tokens = { name: "tokens", target: "engine:claude", unit: "tokens", limit: TOKENS, period: "24h" };
  for (const budget of [runs, tokens]) await call("POST /api/budgets", budget);
  const each = Math.ceil(RUNS / HALF) + 1;
  for (let i = 0; i < 2 * HALF; i++) {
    const engine = i < HALF ? "fake" : "claude";
    const worker = await call("POST /api/workers", { name: `w${i}`, engine });
    // The agent that speaks like Claude Code ends as soon as this file exists.
    await Deno.mkdir(worker.work_dir, { recursive: true });
    await Deno.writeTextFile(join(worker.work_dir, "free"), "");
    const instruction = engine === "fake" ? "sleep 0.2" : "spend 2";
    for (let n = 0; n < each; n++) {
      const task = { message_id: `m${i}-${n}`, worker_id: worker.id, instruction, type: "immediate" };
      await call("POST /api/tasks", task);
    }
  }
}

// Compares the usage in the ledger with the executions, and with the largest allowed excess over the limits.
async function check(call: Client["call"], settled: boolean): Promise<void> {
  const [tokens, runs] = await call("GET /api/budgets");
  expect([tokens.name, runs.name]).toEqual(["tokens", "runs"]);
  expect(runs.used + runs.reserved).toBeLessThanOrEqual(RUNS);
  // Runs that overlapped may each exceed the limit once.
  expect(tokens.used).toBeLessThanOrEqual(TOKENS + HALF * TOKENS_OF_RUN);
  if (!settled) return;
  expect([runs.used, runs.reserved, tokens.reserved]).toEqual([RUNS, 0, 0]);
  const usage = (await call("GET /api/usage?by=engine")) as Record<string, number | string>[];
  const of = (key: string) => usage.find((row) => row.key === key) ?? {};
  expect(of("fake").executions).toBe(RUNS);
  expect(Number(of("claude").input_tokens) + Number(of("claude").output_tokens)).toBe(tokens.used);
}
