import { expect, it } from "vitest";
import { describePins, selectPins } from "./pins.ts";
import { Rig } from "./rig.ts";

const NOW = {
  ...{ type: "immediate", scheduled_at: null, cron: null, time_zone: null },
  ...{ after: [], after_when: null },
};
const WEEKLY = { ...NOW, type: "scheduled", cron: "0 9 * * 1" };
const PLAN = {
  reply: "Both are on it.",
  tasks: [
    { worker: "Ada", instruction: "write it", ...NOW },
    { worker: "Grace", instruction: "count it", ...NOW, after: ["#1"] },
    { worker: "Grace", instruction: "every week", ...WEEKLY },
  ],
};

// Claude Code gets the schema as a tool; the other engines answer in text.
describePins("$kind $version as the coordinator", selectPins(), 200_000, ({ kind, ...pin }) => {
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

  it("asks once more after an answer that is not a plan, then notifies the person", async () => {
    await using rig = await Rig.open({ kind, ...pin }, { bee: true });
    const message = await rig.ask("hello [[text:I would rather not.]]");
    const trace = await rig.app.call(`GET /api/messages/${message}/trace`);
    expect(trace.message.status).toBe("failed");
    expect(trace.replies).toEqual([expect.objectContaining({ source_type: "system" })]);
    expect(trace.tasks).toEqual([]);
  });
});
