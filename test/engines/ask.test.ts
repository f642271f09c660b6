import { expect, it } from "vitest";
import { TestClock } from "../harness/clock.ts";
import { describePins, selectPins } from "./pins.ts";
import { type ExecutionWithLog, Rig } from "./rig.ts";

// Questions of real CLIs with a scripted model. `make test-engines` sets the variables.

const HOUR_MS = 3_600_000;
// An engine may need a minute to start on a busy machine.
const PATIENCE_MS = 600_000;
const TIMEOUT = "9m";

/** Sends a message and waits for its outcome without a tight limit. */
async function say(rig: Rig, content: string): Promise<ExecutionWithLog> {
  await rig.send(content);
  await rig.app.settle(PATIENCE_MS);
  return await rig.latest();
}

describePins("$kind $version asks (contract 12)", selectPins(), 4 * PATIENCE_MS, (pin) => {
  it("ends its run; after an hour and a restart a person answers, and the same session continues", async () => {
    const clock = new TestClock(Date.now());
    await using rig = await Rig.open(pin, { clock, timeout: TIMEOUT });
    const first = await say(
      rig,
      "This is [[id:first-word]]. [[tool:svc ctl ask 'Which colour?' --option Red --option Blue]] [[text:I asked.]]",
    );
    expect(first.execution, first.log).toMatchObject({ status: "completed" });
    expect(first.log).toMatch(/End your turn now\. The answer will arrive as a new task\./);
    const [question] = await rig.app.call("GET /api/questions");
    expect(question, first.log).toMatchObject({
      status: "open",
      options: ["Red", "Blue"],
      worker_id: rig.worker.id,
    });
    await rig.restart();
    clock.advance(HOUR_MS);
    await rig.send("2");
    await rig.app.until("question.answered", 1, PATIENCE_MS);
    await rig.app.settle(PATIENCE_MS);
    const [answered] = await rig.app.call("GET /api/questions");
    expect(answered).toMatchObject({ status: "answered", answer: "Blue", answered_at: expect.any(Number) });
    const second = await rig.latest();
    expect(second.execution, second.log).toMatchObject({
      status: "completed",
      session_id: first.execution.session_id,
      instruction: expect.stringContaining("You asked: Which colour?\n\nThe answer: Blue"),
    });
    const last = await say(rig, "What did I say? [[recall]]");
    expect(last.execution.session_id).toBe(first.execution.session_id);
    expect(last.execution.result, last.log).toMatch(/recall: first-word \| user texts: 3/);
  });

  it("with --wait gets the answer in its own run, and no task delivers it again", async () => {
    await using rig = await Rig.open(pin, { timeout: TIMEOUT });
    await rig.send("Ask. [[tool:svc ctl ask 'Which colour?' --wait 60s > answer.txt]] [[text:Thanks.]]");
    await rig.app.until("question.opened", 1, PATIENCE_MS);
    const [question] = await rig.app.call("GET /api/questions");
    await rig.app.call(`POST /api/questions/${question.id}/answer`, { answer: "Green" });
    await rig.app.settle(PATIENCE_MS);
    const { execution, log } = await rig.latest();
    expect(execution, log).toMatchObject({ status: "completed" });
    expect(await Deno.readTextFile(rig.file("answer.txt")), log).toBe("Green\n");
    expect((await rig.app.call("GET /api/questions"))[0].seen_at).not.toBeNull();
    expect(await rig.app.call("GET /api/executions")).toHaveLength(1);
  });

  it("asks with its tool over MCP", async () => {
    await using rig = await Rig.open(pin, { timeout: TIMEOUT });
    // In its first run on a busy machine Codex does not wait for a server's tools.
    await say(rig, "Say hello.");
    const question = JSON.stringify({ message_id: "by-tool", text: "Which colour?" });
    // The script takes the first tool whose name ends like this, and Codex also has followup_task.
    const tool = pin.kind === "codex" ? "__ask" : "ask";
    // A script's task has a message name that the prompt can contain.
    await rig.app.call("POST /api/tasks", {
      message_id: "by-tool",
      worker_id: rig.worker.id,
      instruction: `Ask. [[call:${tool} ${question}]]`,
      type: "immediate",
    });
    await rig.app.settle(PATIENCE_MS);
    const { log } = await rig.latest();
    const asked = await rig.app.call("GET /api/questions");
    expect(asked, log).toMatchObject([{ text: "Which colour?", session_key: "cli:by-tool", status: "open" }]);
  });
});
