import { expect, it } from "vitest";
import { AcpDialogue } from "../../src/engine/acp_dialogue.ts";
import type { AgentEvent, Line } from "../../src/engine/adapter.ts";
import { claude } from "../../src/engine/adapters/claude.ts";
import { Limits } from "../../src/engine/limits.ts";
import { ORDER } from "../harness/order.ts";

it("Claude Code that stays: a turn that it makes of its own answers nothing (contract 19)", () => {
  const dialogue = claude.open?.begin(ORDER, () => {});
  const result = { type: "result", is_error: false, result: "hello" };
  expect(dialogue?.hear(result)).toMatchObject([{ kind: "done", text: "hello" }]);
  expect(dialogue?.hear({ ...result, origin: { kind: "task-notification" } })).toEqual([]);
});

it("an agent of the protocol whose run is ended before its session is there asks nothing of a model (contract 19)", () => {
  const said: Line[] = [];
  const taken: AgentEvent[] = [];
  const take = (events: AgentEvent[]) => void taken.push(...events);
  const link = { say: (text: string) => void said.push(JSON.parse(text)), close: () => {}, take };
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

it("a second turn of a run is not given the waiting of the first (contract 13)", async () => {
  const { promise, resolve } = Promise.withResolvers<string>();
  const limits = new Limits({ timeoutMs: 60_000, idleTimeoutMs: 50, waitedMs: () => 30_000 }, resolve);
  expect(await promise).toBe("idle_timeout");
  limits.end();
});
