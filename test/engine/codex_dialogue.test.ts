import { expect, it } from "vitest";
import type { AgentEvent, Line, Order } from "../../src/engine/protocol/adapter.ts";
import { codex } from "../../src/engine/adapters/codex.ts";
import { ORDER } from "../harness/model/order.ts";

/** A process with a running turn, and all lines sent to it. */
function begun(order: Order) {
  const said: Line[] = [];
  const taken: AgentEvent[] = [];
  const dialogue = codex.open?.startDialogue(order, {
    say: (text) => said.push(JSON.parse(text)),
    close() {},
  });
  const turn = (words: string) =>
    dialogue?.turn({ ...order, prompt: words }, (events) => taken.push(...events));
  const hear = (line: Line) => dialogue?.hear(line) ?? [];
  const tell = (method: string, params: Line, thread = "t1") =>
    hear({ method, params: { threadId: thread, ...params } });
  turn(order.prompt);
  return { said, taken, turn, hear, tell, interrupt: () => dialogue?.interrupt() };
}

const TEXT = { item: { type: "agentMessage", id: "i", text: "hello" } };
const DONE = { kind: "done", ok: true, text: null, failure: null };

it("Codex that stays open starts a thread, and ignores the turns of other threads (decision 0011)", () => {
  const { said, taken, turn, hear, tell } = begun(ORDER);
  expect(said).toMatchObject([{ id: 1, method: "initialize" }]);
  expect(hear({ id: 1, result: {} })).toEqual([]);
  expect(said.slice(1)).toMatchObject([{ method: "initialized" }, {
    id: 2,
    method: "thread/start",
    params: { cwd: "/work", approvalPolicy: "never", sandbox: "workspace-write" },
  }]);
  expect(hear({ id: 2, result: { thread: { id: "t1" } } })).toEqual([{ kind: "session", id: "t1" }]);
  expect(said[3]).toMatchObject({
    method: "turn/start",
    params: { threadId: "t1", input: [{ type: "text", text: "Say hello." }] },
  });
  hear({ id: 3, result: { turn: { id: "u1" } } });
  expect(tell("item/completed", TEXT, "t2")).toEqual([]);
  expect(tell("item/completed", TEXT)).toEqual([{ kind: "text", text: "hello", mode: "whole" }]);
  tell("thread/tokenUsage/updated", { tokenUsage: { total: { inputTokens: 150, outputTokens: 40 } } });
  expect(tell("turn/completed", { turn: { id: "u1", status: "completed" } })).toEqual([
    { kind: "usage", span: "session", usage: { input_tokens: 150, output_tokens: 40 } },
    DONE,
  ]);
  turn("And now?");
  expect(taken).toEqual([{ kind: "session", id: "t1" }]);
  expect(said.at(-1)).toMatchObject({ method: "turn/start", params: { input: [{ text: "And now?" }] } });
});

it("parses tools, errors and limits like those of `codex exec`", () => {
  const { hear, tell, said, interrupt } = begun({ ...ORDER, resume: true, sessionId: "t1" });
  hear({ id: 1, result: {} });
  expect(said.at(-1)).toMatchObject({ method: "thread/resume", params: { threadId: "t1" } });
  hear({ id: 2, result: { thread: { id: "t1" } } });
  const item = { type: "commandExecution", command: "/bin/bash -c 'echo hi'", status: "inProgress" };
  expect(tell("item/started", { item })).toEqual([{ kind: "tool_start", name: "shell", input: "echo hi" }]);
  expect(tell("item/completed", { item: { ...item, status: "completed", aggregatedOutput: "hi\n" } }))
    .toEqual([{ kind: "tool_end", output: "hi\n", ok: true }]);
  const error = { message: "Reconnecting... 1/5", additionalDetails: "unexpected status 500" };
  expect(tell("error", { error, willRetry: true })).toMatchObject([{ kind: "notice" }]);
  const limited = { ...error, additionalDetails: "429 Too Many JsonRpcClient" };
  expect(tell("error", { error: limited, willRetry: true }))
    .toMatchObject([{ kind: "failure", failure: { kind: "rate_limited" } }]);
  const primary = { usedPercent: 40, windowDurationMins: 300, resetsAt: 1_000 };
  expect(hear({ method: "account/rateLimits/updated", params: { rateLimits: { primary, secondary: null } } }))
    .toEqual([{ kind: "windows", windows: [{ name: "5h", utilization: 0.4, resets_at: 1_000_000 }] }]);
  // No person can approve anything here.
  hear({ id: 7, method: "item/commandExecution/requestApproval", params: { threadId: "t1" } });
  expect(said.at(-1)).toEqual({ id: 7, result: { decision: "decline" } });
  // A turn without a known id ends when the id arrives.
  interrupt();
  hear({ id: 3, result: { turn: { id: "u1" } } });
  expect(said.at(-1)).toMatchObject({ method: "turn/interrupt", params: { threadId: "t1", turnId: "u1" } });
  expect(tell("turn/completed", { turn: { status: "interrupted" } })).toMatchObject([{
    kind: "done",
    ok: false,
  }]);
});

it("a missing thread is an unknown session, and arguments of codex exec keep the process from staying open", () => {
  const { hear } = begun({ ...ORDER, resume: true, sessionId: "t1" });
  hear({ id: 1, result: {} });
  expect(hear({ id: 2, error: { code: -32600, message: "no rollout found for thread id t1" } }))
    .toMatchObject([{ kind: "done", ok: false, failure: { kind: "unknown_session" } }]);
  const takes = (args: string[]) => codex.open?.acceptsArgs?.(args);
  expect(takes(["-c", 'x="y"', "--enable", "z", "--config=a=b", "-cd=1"])).toBe(true);
  expect(takes(["-c", "x=1", "--add-dir", "/x"])).toBe(false);
});

it("drops late output of an earlier turn, and a turn that ends before its thread exists sends no request to a model [CHD-15]", () => {
  const { said, turn, hear, tell } = begun(ORDER);
  hear({ id: 1, result: {} });
  hear({ id: 2, result: { thread: { id: "t1" } } });
  hear({ id: 3, result: { turn: { id: "u1" } } });
  expect(tell("turn/completed", { turn: { id: "u1", status: "interrupted" } })).toMatchObject([{
    ok: false,
  }]);
  turn("And now?");
  expect(tell("item/completed", { ...TEXT, turnId: "u1" })).toEqual([]);
  expect(tell("turn/completed", { turn: { id: "u1", status: "completed" } })).toEqual([]);
  hear({ id: 4, result: { turn: { id: "u2" } } });
  expect(tell("item/completed", { ...TEXT, turnId: "u2" })).toMatchObject([{ text: "hello" }]);
  expect(said.filter(({ method }) => method === "turn/start")).toHaveLength(2);

  const early = begun(ORDER);
  early.hear({ id: 1, result: {} });
  early.interrupt();
  expect(early.hear({ id: 2, result: { thread: { id: "t1" } } })).toMatchObject([{
    kind: "done",
    ok: false,
  }]);
  expect(early.said.at(-1)).toMatchObject({ method: "thread/start" });
});

it("sets the skills of the worker before it starts a thread, and fails the turn of a Codex that takes none", () => {
  const order = { ...ORDER, skills: { dir: "/run/input/skills", names: ["weigh-parcels"] } };
  const { said, hear } = begun(order);
  hear({ id: 1, result: {} });
  expect(said.at(-1)).toEqual({
    id: 2,
    method: "skills/extraRoots/set",
    params: { extraRoots: ["/run/input/skills"] },
  });
  hear({ id: 2, result: {} });
  expect(said.at(-1)).toMatchObject({ id: 3, method: "thread/start" });
  const old = begun(order);
  old.hear({ id: 1, result: {} });
  expect(old.hear({ id: 2, error: { code: -32_601, message: "unknown method" } })).toMatchObject([{
    ...{ kind: "done", ok: false },
    failure: { kind: "unsupported", words: "it takes no skills: unknown method" },
  }]);
  expect(old.said.at(-1)).toMatchObject({ method: "skills/extraRoots/set" });
});
