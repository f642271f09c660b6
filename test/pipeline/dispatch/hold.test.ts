import { describe, expect, it } from "vitest";
import { HoldNotice } from "../../../cli/commands/work/hold.ts";
import type { BaseContext } from "../../../cli/commands/command.ts";
import { buildFakeEngines } from "../../harness/fakes/agents.ts";
import { openApp } from "../../harness/service/app.ts";
import { ctl } from "../../harness/terminal.ts";

async function openBlocked() {
  const app = await openApp({ config: { engines: buildFakeEngines() } });
  await app.call("POST /api/workers", { name: "Ada" });
  const budget = { name: "Tight", unit: "runs", limit: 0, period: "24h" };
  const { id } = await app.call("POST /api/budgets", budget);
  return { app, budgetId: id };
}

describe("svc ctl says what holds the work that it waits for (contract 14)", () => {
  it.each(["run Ada 'say hi' --timeout 5s", "chat 'say hi' --timeout 5s"])("%s", async (command) => {
    const { app } = await openBlocked();
    await using _app = app;
    const { code, out, err } = await ctl(app, command);
    expect([code, out]).toEqual([124, ""]);
    expect(err).toContain('On hold: the budget "Tight" is used up: 0 of 0 runs (24h).\n');
    expect(err).toContain("Command: svc ctl budget lift Tight --for 1h\n");
    expect(err.split("On hold").length).toBe(2);
  });

  it("names a cause once, also while its time counts down", async () => {
    const said: string[] = [];
    const context = { note: (text: string) => said.push(text), out: { format: "tsv" } };
    const notice = new HoldNotice(context as unknown as BaseContext);
    const show = (id: string, seconds: number) =>
      notice.show({
        ...{ status: "pending", worker_id: "w", reason: `${id} is limited` },
        held_by: { kind: "engine", id, until: Date.now() + seconds * 1_000, advice: "Wait." },
      }, () => {});
    await show("claude", 40);
    await show("claude", 38);
    await show("codex", 80);
    expect(said.map((text) => text.split(",")[0])).toEqual([
      "On hold: claude is limited",
      "On hold: codex is limited",
    ]);
  });

  it("a task that waits for a paused worker", async () => {
    await using app = await openApp({ config: { engines: buildFakeEngines() } });
    await app.call("POST /api/workers", { name: "Ada", paused: true });
    const { code, err } = await ctl(app, "run Ada 'say hi' --timeout 6s");
    expect(code).toBe(124);
    expect(err).toContain("On hold: Ada is paused.\nTo resume it: svc ctl worker resume Ada\n");
  });

  it("the API says what holds a task, until when, and the way out", async () => {
    const { app, budgetId } = await openBlocked();
    await using _app = app;
    const [{ id: worker_id }] = await app.call("GET /api/workers");
    const body = { message_id: "m", worker_id, instruction: "say hi", type: "immediate" };
    const { id } = await app.call("POST /api/tasks", body);
    await app.settle();
    expect((await app.call(`GET /api/tasks/${id}`)).held_by).toEqual({
      ...{ kind: "budget", id: budgetId, until: null },
      advice: "Wait, raise the budget, or lift it for a while.",
    });
  });
});
