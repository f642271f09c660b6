import { describe, expect, it } from "vitest";
import { findMarked } from "../../src/engine/process/isolation.ts";
import { buildFakeEngines } from "../harness/fakes/agents.ts";
import { openApp } from "../harness/service/app.ts";

describe("executor: outcomes (contract 3, Execution; contract 4.6, contract 7)", () => {
  it("cancelling a run ends its whole process tree within the grace period (contract 3) [CHD-1]", async () => {
    await using app = await openApp({
      config: { engines: buildFakeEngines(), limits: { stop_grace: "500ms" } },
    });
    const worker = await app.call("POST /api/workers", { name: "Ada" });
    const session = await app.call("POST /api/local/sessions", { worker_id: worker.id });
    await app.call(`POST /api/local/sessions/${session.id}/messages`, { content: "ignore-term" });
    await app.until("execution.started");
    expect((await app.call(`GET /api/workers/${worker.id}`)).status).toBe("working");
    const [{ id }] = await app.call("GET /api/executions");
    const [run] = await app.db.read<{ run_id: string }>("select run_id from execution");
    const mark = new Set([run?.run_id ?? ""]);
    while ((await findMarked(mark)).length < 5) await new Promise((resolve) => setTimeout(resolve, 20));
    const started = performance.now();
    expect(await app.call(`POST /api/executions/${id}/cancel`)).toMatchObject({
      status: "failed",
      failure: "cancelled",
    });
    expect(performance.now() - started).toBeLessThan(2_000 + 500 + 1_000);
    expect(await findMarked(mark)).toEqual([]);
    expect(await app.db.first("select status, reason from task")).toMatchObject({
      status: "cancelled",
      reason: "cancelled by user:admin",
    });
    expect((await app.send(`POST /api/executions/${id}/cancel`)).status).toBe(409);
    expect((await app.send(`POST /api/executions/${crypto.randomUUID()}/cancel`)).status).toBe(404);
    expect((await app.call(`GET /api/local/sessions/${session.id}/messages`)).at(-1).content).toMatch(
      /was stopped/,
    );
  });
});
