import { describe, expect, it } from "vitest";
import { buildFakeEngines } from "../../harness/fakes/agents.ts";
import { openApp } from "../../harness/service/app.ts";
import { waitUntil } from "../../harness/wait.ts";

const RUNS = { name: "Runs", unit: "runs", limit: 8, period: "24h" };

describe("/api/budgets (contract 14)", () => {
  it("refuses invalid values and names the field", async () => {
    await using app = await openApp({ inMemory: true });
    await app.call("POST /api/workers", { name: "Twin" });
    await app.call("POST /api/workers", { name: "twin" });
    await app.call("POST /api/budgets", RUNS);
    const cases = [
      [{ ...RUNS, name: "runs" }, 409, /another budget has this name/],
      [{ ...RUNS, name: "a", limit: 1.5 }, 400, /limit: must be a whole number of runs/],
      [{ ...RUNS, name: "a", limit: -1 }, 400, /limit: must be at least 0/],
      [{ ...RUNS, name: "a", target: "everybody" }, 400, /target: must be global/],
      [
        { ...RUNS, name: "a", target: "worker:nobody" },
        400,
        /target: no worker has the id or the name "nobody"/,
      ],
      [{ ...RUNS, name: "a", target: "worker:TWIN" }, 400, /target: several workers are called "TWIN"/],
      [{ ...RUNS, name: "a", target: "department:x" }, 400, /target: no department/],
      [{ ...RUNS, name: "a", target: "engine:nix" }, 400, /target: no engine is called "nix"/],
      [{ ...RUNS, name: "a", soft: 0 }, 400, /soft: must be at least 1/],
      [{ ...RUNS, name: "a", period: "1h" }, 400, /period: must be one of/],
    ] as const;
    for (const [input, status, words] of cases) {
      const { status: got, body } = await app.send("POST /api/budgets", input);
      expect([got, body.detail], JSON.stringify(input)).toEqual([status, expect.stringMatching(words)]);
    }
    const missing = "01a1fd23-4a4c-746f-99ac-8860e2641168";
    for (const [route, body] of [["GET", undefined], ["PUT", { limit: 1 }], ["DELETE", undefined]] as const) {
      expect((await app.send(`${route} /api/budgets/${missing}`, body)).status).toBe(404);
    }
    expect((await app.send(`POST /api/budgets/${missing}/lift`, { for_ms: 1 })).status).toBe(404);
  });

  it("accepts the response of GET, and filters by target and name", async () => {
    await using app = await openApp({ inMemory: true });
    const made = await app.call("POST /api/budgets", RUNS);
    expect(await app.call(`PUT /api/budgets/${made.id}`, made)).toMatchObject({ ...RUNS, used: 0 });
    expect(await app.call("GET /api/budgets?target=global")).toMatchObject([{ id: made.id }]);
    expect(await app.call("GET /api/budgets?target=engine:echo")).toEqual([]);
    expect(await app.call("GET /api/budgets?ref=RUNS")).toMatchObject([{ id: made.id }]);
  });

  it("lowering a limit during 8 runs blocks the next run, and ends the 8 runs only with `stop`", async () => {
    await using app = await openApp({
      config: { engines: buildFakeEngines(), limits: { max_concurrent_runs: 20 } },
    });
    const { id } = await app.call("POST /api/budgets", { ...RUNS, limit: 100 });
    const give = async (name: string) => {
      const worker = await app.call("POST /api/workers", { name });
      const task = { message_id: name, worker_id: worker.id, instruction: "sleep 60", type: "immediate" };
      return await app.call("POST /api/tasks", task);
    };
    for (let i = 0; i < 8; i++) await give(`w${i}`);
    await app.until("execution.started", 8);
    expect(await app.call(`PUT /api/budgets/${id}`, { limit: 3 })).toMatchObject({
      used: 0,
      reserved: 8,
      state: "hard",
    });
    const next = await give("next");
    await waitUntil(
      "the next is held",
      async () => (await app.call(`GET /api/tasks/${next.id}`)).held_by !== null,
    );
    expect(await app.call("GET /api/executions?status=running")).toHaveLength(8);
    await app.call(`PUT /api/budgets/${id}`, { action: "stop" });
    await app.until("execution.failed", 8);
    const ended = await app.call("GET /api/executions");
    expect(ended.map(({ failure }: { failure: string }) => failure)).toEqual(Array(8).fill("budget"));
    expect(await app.call(`GET /api/budgets/${id}`)).toMatchObject({ used: 8, reserved: 0 });
    // A suspended budget blocks nothing.
    await app.call(`POST /api/budgets/${id}/lift`, { for_ms: 3_600_000 });
    await app.until("execution.started", 9);
  });
});
