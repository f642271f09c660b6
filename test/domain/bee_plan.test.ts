import { describe, expect, it } from "vitest";
import { formatPlanReason, readPlan } from "../../src/domain/chat/bee_plan.ts";

const ADA = {
  id: "01a1fd23-4a4c-746f-99ac-8860e2641168",
  name: "Ada",
  description: "",
  paused: false,
  departments: [],
};
const MAX = { ...ADA, id: "01a1fd23-4a4c-746f-99ac-8860e2641169", name: "Max Müller" };
const context = { candidates: [ADA, MAX], now: 1_000_000, timeZone: "UTC" };
const read = (answer: unknown, candidates = context.candidates) =>
  readPlan(typeof answer === "string" ? answer : JSON.stringify(answer), { ...context, candidates });
const task = (more: object = {}) => ({ tasks: [{ worker: "Ada", instruction: "do it", ...more }] });

describe("readPlan (contract 4.4)", () => {
  it("reads a plan alone, in a code block, and inside other text", () => {
    const json = JSON.stringify({ reply: "On it.", ...task() });
    for (const answer of [json, `\`\`\`json\n${json}\n\`\`\``, `Here is my plan:\n\n${json}\n\nDone.`]) {
      expect(readPlan(answer, context)).toEqual({
        reply: "On it.",
        tasks: [expect.objectContaining({ workerId: ADA.id, instruction: "do it", type: "immediate" })],
      });
    }
  });

  it("finds workers by id, by name in any case, and with a leading @", () => {
    for (const worker of [ADA.id, ADA.id.toUpperCase(), "ada", "@ADA"]) {
      expect(read(task({ worker }))).toMatchObject({ tasks: [{ workerId: ADA.id }] });
    }
    expect(read(task({ worker: "max mu\u0308ller" }))).toMatchObject({ tasks: [{ workerId: MAX.id }] });
  });

  it("accepts countdowns and schedules, and the same worker several times", () => {
    expect(read(task({ type: "countdown", scheduled_at: 1_005_000 }))).toMatchObject({
      tasks: [{ plan: { status: "scheduled", next_run_at: 1_005_000 } }],
    });
    expect(
      read(task({ type: "scheduled", cron: "0 9 * * 1", time_zone: "Europe/Berlin", scheduled_at: null })),
    )
      .toMatchObject({ tasks: [{ plan: { status: "scheduled", cron: "0 9 * * 1" } }] });
    expect(read({ tasks: [...task().tasks, ...task().tasks] })).toMatchObject({ tasks: [{}, {}] });
  });

  it("reads the earlier tasks that a task waits for (contract 25)", () => {
    const step = task().tasks[0];
    expect(read({ tasks: [step, step, { ...step, after: ["#2", "#1", "#2"], after_when: "end" }] }))
      .toMatchObject({
        tasks: [{ after: [], after_when: "success" }, {}, { after: [1, 0], after_when: "end" }],
      });
    for (const after of [["#2"], ["#3"], ["#0"], ["Ada"]]) {
      expect(read({ tasks: [step, { ...step, after }] })).toEqual({
        problem: "tasks.1.after: must name earlier tasks of this plan; the first is #1, this one is #2",
      });
    }
    expect(
      read({
        tasks: [step, { ...task({ type: "countdown", scheduled_at: 1_005_000 }).tasks[0], after: ["#1"] }],
      }),
    )
      .toEqual({ problem: expect.stringContaining("after: does not apply to type countdown") });
  });

  it("reports the problem, so that the coordinator can correct it", () => {
    const problems: [unknown, RegExp][] = [
      ["I think Ada should do it.", /not one JSON object/],
      ["", /not one JSON object/],
      ["[1, 2]", /not one JSON object/],
      ['{"tasks": [', /not one JSON object/],
      [{}, /neither a reply nor a task/],
      [{ reply: "  ", tasks: [] }, /neither a reply nor a task/],
      [{ reply: 7 }, /^reply: /],
      [{ plan: [] }, /plan: .*[Uu]nrecognized key/],
      [{ tasks: "Ada" }, /^tasks: /],
      [
        task({ worker: "Eve" }),
        /^tasks\.0\.worker: no worker has the name "Eve"; the workers are: Ada, Max Müller/,
      ],
      [{ tasks: [{ instruction: "x" }] }, /^tasks\.0\.worker: /],
      [task({ instruction: " " }), /^tasks\.0\.instruction: must not be empty/],
      [task({ type: "countdown" }), /^tasks\.0\.scheduled_at: is missing/],
      [
        task({ type: "countdown", scheduled_at: 1_000_001 }),
        /^tasks\.0\.scheduled_at: must be at least 5 seconds ahead/,
      ],
      [task({ type: "scheduled", cron: "61 * * * *" }), /^tasks\.0\.cron: minute: 61 is not 0-59/],
      [task({ type: "scheduled", cron: "* * * * *", time_zone: "Mars/City" }), /^tasks\.0\.time_zone: /],
      [task({ cron: "* * * * *" }), /^tasks\.0\.cron: does not apply to type immediate/],
      [{ tasks: Array.from({ length: 1000 }, () => task().tasks[0]) }, /^tasks: must be at most 20 tasks/],
    ];
    for (const [answer, wanted] of problems) {
      const found = read(answer);
      expect([answer, "problem" in found ? found.problem : found]).toEqual([
        answer,
        expect.stringMatching(wanted),
      ]);
    }
    expect(read(task(), [ADA, { ...MAX, name: "ada" }])).toEqual({
      problem: "tasks.0.worker: 2 workers are called Ada; give the id",
    });
  });

  it("formatPlanReason() names the workers and counts the tasks", () => {
    const plan = (answer: unknown) => {
      const found = read(answer);
      if ("problem" in found) throw new Error(found.problem);
      return formatPlanReason(found);
    };
    expect(plan(task())).toBe("the coordinator's plan: 1 task for Ada");
    expect(plan({ reply: "ok", tasks: [...task().tasks, { worker: MAX.id, instruction: "x" }] }))
      .toBe("the coordinator's plan: 2 tasks for Ada, Max Müller, and a reply");
    expect(plan({ reply: "hello" })).toBe("the coordinator replies itself");
  });
});
