import { describe, expect, it } from "vitest";
import { PINS } from "./pins.ts";
import { Rig } from "./rig.ts";

const wanted = (Deno.env.get("SVC_TEST_ENGINES") ?? "").split(",");
const pins = PINS.filter(({ kind }) => wanted.includes(kind) || wanted[0] === "all");

const PLAN = {
  reply: "Both are on it.",
  tasks: [
    {
      worker: "Ada",
      instruction: "write it",
      type: "immediate",
      scheduled_at: null,
      cron: null,
      time_zone: null,
    },
    {
      worker: "Grace",
      instruction: "count it",
      type: "immediate",
      scheduled_at: null,
      cron: null,
      time_zone: null,
    },
    {
      worker: "Grace",
      instruction: "every week",
      type: "scheduled",
      scheduled_at: null,
      cron: "0 9 * * 1",
      time_zone: null,
    },
  ],
};

describe.skipIf(pins.length > 0)("a coordinator on an engine", () => {
  it.skip("real CLIs: run make test-engines", () => {});
});

// Claude Code gets the schema as a tool; the other engines answer in text.
describe.each(pins)("$kind $version as the coordinator", { timeout: 200_000 }, ({ kind, ...pin }) => {
  it("splits one message into tasks for two workers and a schedule, in one commit (contract 4.4)", async () => {
    await using rig = await Rig.open({ kind, ...pin }, { bee: true });
    const plan = JSON.stringify(PLAN);
    const marker = kind === "claude" ? `[[call:StructuredOutput ${plan}]]` : `[[text:${plan}]]`;
    const message = await rig.ask(`please write, count, and count every week ${marker}`);
    const trace = await rig.app.call(`GET /api/messages/${message}/trace`);
    const log = await rig.app.call(`GET /api/executions/${trace.routing[0].id}/logs`);
    expect(trace.routing, log).toEqual([
      expect.objectContaining({ engine: kind, status: "completed", task_count: 3, reply: "Both are on it." }),
    ]);
    expect(trace.routing[0].usage).toMatchObject({ input_tokens: expect.any(Number) });
    expect(
      trace.tasks.map((task: { instruction: string; status: string }) => [task.instruction, task.status])
        .sort(),
    )
      .toEqual([["count it", "completed"], ["every week", "scheduled"], ["write it", "completed"]]);
  });

  it("repeats an answer that is not a plan once, then notifies the person", async () => {
    await using rig = await Rig.open({ kind, ...pin }, { bee: true });
    const message = await rig.ask("hello [[text:I would rather not.]]");
    const trace = await rig.app.call(`GET /api/messages/${message}/trace`);
    expect(trace.message.status).toBe("failed");
    expect(trace.replies).toEqual([expect.objectContaining({ source_type: "system" })]);
    expect(trace.tasks).toEqual([]);
  });
});
