import { describe, expect, it } from "vitest";
import { buildFakeEngines } from "../harness/fakes/agents.ts";
import { type App, openApp } from "../harness/service/app.ts";
import { type AskingRun, startAskingRun } from "../harness/fakes/asker.ts";
import { TestClock } from "../harness/clock.ts";
import { waitForValue } from "../harness/wait.ts";
import type { Json } from "../harness/service/client.ts";

const MINUTE_MS = 60_000;

function open(options: { clock?: TestClock; config?: Json } = {}): Promise<App> {
  return openApp({ ...options, config: { engines: buildFakeEngines(), ...options.config } });
}

/** Sends a message in the conversation as the operator; returns the message as it is routed. */
async function say(app: App, run: AskingRun, body: Record<string, unknown>): Promise<Json> {
  const { message_id: id } = await app.call(`POST /api/local/sessions/${run.sessionId}/messages`, body);
  return await waitForValue(async () => {
    const { message } = await app.call(`GET /api/messages/${id}/trace`);
    return message.status === "received" || message.status === "feeding" ? null : message;
  });
}

async function get(app: App, id: string): Promise<Json> {
  return await app.call(`GET /api/questions/${id}`);
}

/** Returns the conversation's message that asks the question. */
async function findMessage(app: App, run: AskingRun, id: string): Promise<string> {
  const history: Json[] = await app.call(`GET /api/local/sessions/${run.sessionId}/messages`);
  return history.find((message) => message.question_id === id)?.id;
}

describe("an answer in the chat (contract 12)", () => {
  it("is exactly an option's text or number of the only open question", async () => {
    await using app = await open();
    const run = await startAskingRun(app);
    for (const [words, answer] of [["Blue", "Blue"], [" 1 ", "Red"], ["3", "1"]]) {
      const { id } = await run.ask({ text: `${words}?`, options: ["Red", "Blue", "1"] });
      const expected = words === " 1 " ? "1" : answer;
      for (const other of ["blue", "Blue.", "4", "0", "I think Blue"]) {
        await app.call(`POST /api/local/sessions/${run.sessionId}/messages`, { content: other, alone: true });
      }
      const message = await say(app, run, { content: words });
      expect([words, message.routed]).toEqual([words, "task"]);
      expect(await get(app, id)).toMatchObject({
        status: "answered",
        answer: expected,
        answered_by: "user:admin",
      });
    }
    const one = await run.ask({ text: "One?", options: ["Yes"] });
    const two = await run.ask({ text: "Two?", options: ["Yes"] });
    await say(app, run, { content: "Yes" });
    expect([(await get(app, one.id)).status, (await get(app, two.id)).status]).toEqual(["open", "open"]);
    await run.end();
  });

  it("to a free question is the first plain message within ten minutes; later messages are ordinary", async () => {
    const clock = new TestClock();
    await using app = await open({ clock });
    const run = await startAskingRun(app);
    const soon = await run.ask({ text: "Soon?" });
    clock.advance(10 * MINUTE_MS);
    await say(app, run, { content: "  In ten minutes.\n" });
    expect(await get(app, soon.id)).toMatchObject({ status: "answered", answer: "In ten minutes." });
    const late = await run.ask({ text: "Late?" });
    clock.advance(10 * MINUTE_MS + 1);
    const message = await say(app, run, { content: "Hello" });
    expect(message.routed).toBe("task");
    expect((await get(app, late.id)).status).toBe("open");
    const other = await run.ask({ text: "Another?" });
    await say(app, run, { content: "For which?" });
    expect([(await get(app, late.id)).status, (await get(app, other.id)).status]).toEqual(["open", "open"]);
    await run.end();
  });

  it("is a reply to its question even with other open questions, and /answer with one open question", async () => {
    await using app = await open();
    const run = await startAskingRun(app);
    const one = await run.ask({ text: "One?", options: ["Yes", "No"] });
    const two = await run.ask({ text: "Two?" });
    await say(app, run, { content: "2", reply_to: await findMessage(app, run, one.id) });
    expect(await get(app, one.id)).toMatchObject({ status: "answered", answer: "No" });
    const three = await run.ask({ text: "Three?", options: ["a"] });
    const unclear = await say(app, run, { content: "/answer this" });
    expect(unclear.routed).toBe("reply");
    const history = await app.call(`GET /api/local/sessions/${run.sessionId}/messages`);
    expect(history.at(-1)).toMatchObject({
      content: "There are 2 open questions here. Reply to the one that you mean.",
      reply_to: unclear.id,
    });
    await say(app, run, { content: "/answer of mine", reply_to: await findMessage(app, run, two.id) });
    expect(await get(app, two.id)).toMatchObject({ status: "answered", answer: "of mine" });
    await say(app, run, { content: "!answer\nneither\nnor" });
    expect(await get(app, three.id)).toMatchObject({ status: "answered", answer: "neither\nnor" });
    expect((await say(app, run, { content: "/answer again" })).routed).toBe("reply");
    await run.end();
    await app.settle();
  });

  it("belongs to the task that it becomes, so that the task's reply answers the message", async () => {
    await using app = await open();
    const run = await startAskingRun(app);
    const { id } = await run.ask({ options: ["Yes"] });
    await run.end();
    const message = await say(app, run, { content: "yes", reply_to: await findMessage(app, run, id) });
    await app.settle();
    const { tasks } = await app.call(`GET /api/messages/${message.id}/trace`);
    expect(tasks).toHaveLength(1);
    expect(tasks[0]).toMatchObject({ worker_id: run.workerId, message_id: message.id });
  });

  it("does not wait for the debounce window, and is not merged with earlier messages", async () => {
    await using app = await open({ config: { bee: { quiet_window: "2s" } } });
    const run = await startAskingRun(app);
    // A message from before the question cannot be its answer.
    const { message_id: before } = await app.call(`POST /api/local/sessions/${run.sessionId}/messages`, {
      content: "ok before",
    });
    const { id } = await run.ask();
    await app.call(`POST /api/local/sessions/${run.sessionId}/messages`, { content: "Green" });
    await app.until("question.answered");
    expect(await get(app, id)).toMatchObject({ answer: "Green" });
    const { message } = await app.call(`GET /api/messages/${before}/trace`);
    expect(message.status).toBe("received");
    await run.end();
  });
});
