import { describe, expect, it } from "vitest";
import { countRuns, openAskingService, waitForCalls } from "../harness/fakes/asking_claude.ts";
import { waitForValue } from "../harness/wait.ts";
import { TestClock } from "../harness/clock.ts";
import type { App } from "../harness/service/app.ts";

const answer = (app: App, id: string, given: string) =>
  app.send(`POST /api/questions/${id}/answer`, { answer: given });
const latest = async (app: App) => (await app.call("GET /api/executions"))[0];

describe("a tool call that a person decides on (contract 23)", () => {
  it("runs after Allow and not after Deny, and the turn continues [APV-1]", async () => {
    await using one = await openAskingService();
    await one.call(`Write ${one.path("a")}; Write ${one.path("b")}`);
    const calls = await waitForCalls(one.app, 2);
    expect(calls[0]).toMatchObject({
      tool: "Write",
      options: ["Allow", "Allow in this conversation", "Deny"],
      default: "Deny",
      worker_id: one.worker.id,
      session_key: one.sessionKey,
    });
    const [allowed, denied] = ["a", "b"].map((name) =>
      calls.find((call) => call.arguments.includes(`"${one.path(name)}"`))
    );
    expect((await answer(one.app, allowed?.id, "maybe")).status).toBe(400);
    await answer(one.app, allowed?.id, "1");
    await answer(one.app, denied?.id, "Deny");
    await one.app.settle();
    const { status, result } = await latest(one.app);
    expect(status).toBe("completed");
    expect(result).toMatch(/allow/);
    expect(result).toMatch(/This call was not allowed: answered by user:admin\./);
    expect(await Promise.all([countRuns(one.path("a")), countRuns(one.path("b"))])).toEqual([1, 0]);
    expect((await answer(one.app, denied?.id, "Allow")).status).toBe(409);
  });

  it("runs without a question after Allow in this conversation, with the same path, until /new [APV-1]", async () => {
    await using one = await openAskingService();
    const path = one.path("a");
    const list = () => one.app.call(`GET /api/approvals?session_key=${one.sessionKey}`);
    await one.call(`Write ${path}`);
    const [first] = await waitForCalls(one.app);
    await answer(one.app, first?.id, "Allow in this conversation");
    await one.app.settle();
    expect(await list()).toMatchObject([{
      id: first?.id,
      worker_name: "Ada",
      engine: "claude",
      tool: "Write",
      path,
      allowed_by: "user:admin",
    }]);
    // The conversation remembers the path of a file tool, whatever it writes.
    await one.call(`Write ${path} other words`);
    await one.app.settle();
    expect((await latest(one.app)).result).toBe("allow");
    expect(await countRuns(path)).toBe(2);
    for (const other of [`Write ${path}2`, `Edit ${path}`]) {
      await one.call(other);
      const [asked] = await waitForCalls(one.app);
      await answer(one.app, asked?.id, "Deny");
      await one.app.settle();
    }
    await one.app.call(`DELETE /api/contexts/${one.worker.id}?session_key=${one.sessionKey}`);
    expect(await list()).toEqual([]);
    await one.call(`Write ${path}`);
    const [again] = await waitForCalls(one.app);
    await answer(one.app, again?.id, "Deny");
    await one.app.settle();
    expect(await countRuns(path)).toBe(2);
  });

  it("remembers other tools with exactly these arguments", async () => {
    await using one = await openAskingService();
    await one.call(`Bash ${one.path("a")}`);
    const [first] = await waitForCalls(one.app);
    await answer(one.app, first?.id, "Allow in this conversation");
    await one.app.settle();
    await one.call(`Bash ${one.path("a")}`);
    await one.app.settle();
    expect(await countRuns(one.path("a"))).toBe(2);
    await one.call(`Bash ${one.path("a")} more`);
    const [asked] = await waitForCalls(one.app);
    await answer(one.app, asked?.id, "Deny");
    await one.app.settle();
    expect(await countRuns(one.path("a"))).toBe(2);
  });

  it("has a separate question, even next to an equal one, so that one answer allows one call [APV-1]", async () => {
    await using one = await openAskingService();
    const path = one.path("a");
    await one.call(`Write ${path}; Write ${path}`);
    const calls = await waitForCalls(one.app, 2);
    await answer(one.app, calls[0]?.id, "Allow");
    await waitForValue(async () => await countRuns(path) === 1 || null);
    await answer(one.app, calls[1]?.id, "Deny");
    await one.app.settle();
    expect(await countRuns(path)).toBe(1);
  });

  it("is denied after ask_timeout", async () => {
    const clock = new TestClock();
    await using one = await openAskingService({ clock, engine: { ask_timeout: "10m" } });
    await one.call(`Write ${one.path("a")}`);
    const [call] = await waitForCalls(one.app);
    expect(call?.expires_at - call?.created_at).toBe(600_000);
    clock.advance(600_001);
    await one.app.settle();
    expect((await latest(one.app)).result).toMatch(/nobody answered in time/);
    expect(await one.app.call(`GET /api/questions/${call?.id}`)).toMatchObject({
      status: "answered",
      answer: "Deny",
      answered_by: "default",
    });
    expect(await countRuns(one.path("a"))).toBe(0);
  });

  it("is denied and its question cancelled when its run is cancelled [APV-1]", async () => {
    await using one = await openAskingService();
    await one.call(`Write ${one.path("a")}`);
    const [call] = await waitForCalls(one.app);
    await one.app.call(`POST /api/executions/${call?.execution_id}/cancel`, {});
    expect(await one.app.call(`GET /api/questions/${call?.id}`)).toMatchObject({ status: "cancelled" });
    expect((await answer(one.app, call?.id, "Allow")).status).toBe(409);
    await one.app.settle();
    expect(await countRuns(one.path("a"))).toBe(0);
  });

  it("is denied and its question cancelled when its run takes too long, and no task brings an answer", async () => {
    await using one = await openAskingService({ engine: { timeout: "8s" } });
    await one.call(`Write ${one.path("a")}`);
    const [call] = await waitForCalls(one.app);
    await one.app.settle();
    expect(await latest(one.app)).toMatchObject({ status: "failed", failure: "timeout" });
    expect(await one.app.call(`GET /api/questions/${call?.id}`)).toMatchObject({ status: "cancelled" });
    expect(await one.app.call(`GET /api/tasks?worker_id=${one.worker.id}`)).toHaveLength(1);
    expect(await countRuns(one.path("a"))).toBe(0);
  });

  it("gets words for its run only after the answer", async () => {
    await using one = await openAskingService();
    await one.call(`Write ${one.path("a")}`);
    const [call] = await waitForCalls(one.app);
    const steer = one.app.call(`POST /api/executions/${call?.execution_id}/steer`, { content: "until /" });
    expect((await steer).status).toBe("sent");
    await answer(one.app, call?.id, "Allow");
    await waitForValue(async () => {
      const row = await one.app.db.first<{ status: string }>("select status from steer");
      return row?.status === "delivered" || null;
    });
    await one.app.settle();
    expect(await countRuns(one.path("a"))).toBe(1);
  });
});

it("a token without write:questions answers by no message, not even about its own run (contract 12.2)", async () => {
  await using one = await openAskingService();
  const path = `POST /api/local/sessions/${one.session.id}/messages`;
  const sendAs = async (name: string, scopes: string[]) => {
    const { token } = await one.app.call("POST /api/tokens", { name, scopes });
    return (content: string) => one.app.send(path, { content }, { authorization: `Bearer ${token}` });
  };
  const writer = await sendAs("writer", ["write:chat"]);
  const decider = await sendAs("decider", ["write:chat", "write:questions"]);
  await writer(`call Write ${one.path("a")}`);
  const [asked] = await waitForCalls(one.app);
  for (const words of ["Allow", "1", "/answer Allow"]) await writer(words);
  await one.app.until("message.received", 4);
  await one.app.until("message.routed", 4);
  expect(await one.app.call(`GET /api/questions/${asked?.id}`)).toMatchObject({ status: "open" });
  expect(await countRuns(one.path("a"))).toBe(0);
  await decider("Allow");
  await waitForValue(async () => await countRuns(one.path("a")) === 1 ? true : null);
  expect(await one.app.call(`GET /api/questions/${asked?.id}`)).toMatchObject({
    answered_by: "token:decider",
  });
  await one.app.settle();
});
