import { expect, it } from "vitest";
import { AcpDialogue } from "../../src/engine/protocol/acp_dialogue.ts";
import type { AgentEvent, Line } from "../../src/engine/protocol/adapter.ts";
import { acp } from "../../src/engine/adapters/acp.ts";
import { claude } from "../../src/engine/adapters/claude.ts";
import { codex } from "../../src/engine/adapters/codex.ts";
import { TimeLimits } from "../../src/engine/process/time_limits.ts";
import { ORDER } from "../harness/model/order.ts";

it("Claude Code that stays open: ignores the result of a background task (contract 19) [CHD-15]", () => {
  const dialogue = claude.open?.startDialogue(ORDER, { say() {}, close() {} });
  const result = { type: "result", is_error: false, result: "hello" };
  expect(dialogue?.hear(result)).toMatchObject([{ kind: "done", text: "hello" }]);
  expect(dialogue?.hear({ ...result, origin: { kind: "task-notification" } })).toEqual([]);
});

it("an ACP agent whose run ends before its session exists sends no request to a model (contract 19) [CHD-15]", () => {
  const said: Line[] = [];
  const taken: AgentEvent[] = [];
  const take = (events: AgentEvent[]) => void taken.push(...events);
  const link = { say: (text: string) => void said.push(JSON.parse(text)), close: () => {} };
  const dialogue = new AcpDialogue(ORDER, link, true);
  dialogue.turn(ORDER, take);
  dialogue.hear({ id: said[0]?.id, result: { protocolVersion: 1, agentCapabilities: {} } });
  dialogue.interrupt();
  dialogue.hear({ id: said[1]?.id, result: { sessionId: "s1" } });
  expect(said.map(({ method }) => method)).toEqual(["initialize", "session/new"]);
  expect(taken).toMatchObject([{ kind: "done", ok: false }]);
  dialogue.turn(ORDER, take);
  expect(said.at(-1)).toMatchObject({ method: "session/prompt" });
  dialogue.close();
});

it("an ACP agent that sends a deeply nested request gets an error, and the service continues (contract 17) [CHD-15]", async () => {
  const said: Line[] = [];
  const link = {
    say: (text: string) => void said.push(JSON.parse(text)),
    close: () => {},
  };
  const dialogue = new AcpDialogue(ORDER, link, true);
  let deep: unknown = "x";
  for (let i = 0; i < 20_000; i++) deep = [deep];
  const calls = [{ toolCallId: "x", status: "completed", content: deep }, { rawInput: { a: deep } }];
  for (const [id, toolCall] of calls.entries()) {
    dialogue.hear({ id, method: "session/request_permission", params: { toolCall } });
  }
  await new Promise((resolve) => setTimeout(resolve, 0));
  expect(said.slice(1)).toMatchObject([0, 1].map((id) => ({ id, error: { code: -32_603 } })));
  dialogue.close();
});

it("the output between turns shows whether an agent works without a request (contract 19)", () => {
  const codexWork = '{"method":"item/started","params":{"threadId":"another"}}';
  expect(codex.open?.showsWork?.(codexWork)).toBe(true);
  expect(codex.open?.showsWork?.('{"method":"thread/tokenUsage/updated","params":{}}')).toBe(false);
  const update = (kind: string) =>
    JSON.stringify({ method: "session/update", params: { update: { sessionUpdate: kind } } });
  expect(acp.open?.showsWork?.(update("tool_call"))).toBe(true);
  // Late events of the previous turn.
  expect(acp.open?.showsWork?.(update("agent_message_chunk"))).toBe(false);
  expect(acp.open?.showsWork?.(update("tool_call_update"))).toBe(false);
});

it("the idle limit of a second turn does not include the waiting time of the first (contract 13)", async () => {
  const { promise, resolve } = Promise.withResolvers<string>();
  const limits = new TimeLimits({ timeoutMs: 60_000, idleTimeoutMs: 50, waitedMs: () => 30_000 }, resolve);
  expect(await promise).toBe("idle_timeout");
  limits.end();
});
