import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { USAGE_UNKNOWN } from "../../src/domain/work/execution.ts";
import { claude } from "../../src/engine/adapters/claude.ts";
import { codex } from "../../src/engine/adapters/codex.ts";
import { copilot } from "../../src/engine/adapters/copilot.ts";
import { gemini } from "../../src/engine/adapters/gemini.ts";
import { goose } from "../../src/engine/adapters/goose.ts";
import { opencode } from "../../src/engine/adapters/opencode.ts";
import { qwen } from "../../src/engine/adapters/qwen.ts";
import { AcpDialogue } from "../../src/engine/protocol/acp_dialogue.ts";
import type { Adapter, Line } from "../../src/engine/protocol/adapter.ts";
import { OutputParser } from "../../src/engine/protocol/output_parser.ts";
import { RunLog } from "../../src/engine/process/run_log.ts";
import { ORDER } from "../harness/model/order.ts";

/** How one engine writes a text, a tool call, and the end of a turn without a final text. */
interface Speech {
  name: string;
  adapter: Adapter;
  parse?: () => Adapter["parseLine"];
  text: (text: string) => Line;
  tool: Line;
  end: (result: string) => Line[];
}

const assistant = (content: unknown) => ({
  type: "assistant",
  message: { content },
  parent_tool_use_id: null,
});
const claudeLike = (name: string, adapter: Adapter, more: Partial<Speech> = {}): Speech => ({
  name,
  adapter,
  text: (text) => assistant([{ type: "text", text }]),
  tool: assistant([{ type: "tool_use", id: "t", name: "Bash", input: { command: "true" } }]),
  end: (result) => [{ type: "result", subtype: "success", is_error: false, result, usage: {} }],
  ...more,
});

function openAcp(): Adapter["parseLine"] {
  const said: Line[] = [];
  const link = { say: (text: string) => void said.push(JSON.parse(text)), close() {} };
  const dialogue = new AcpDialogue(ORDER, link);
  dialogue.turn(ORDER, () => {});
  dialogue.hear({ id: said[0]?.id, result: { protocolVersion: 1, agentCapabilities: {} } });
  dialogue.hear({ id: said[1]?.id, result: { sessionId: "s1" } });
  return (line) => dialogue.hear(line.method === undefined ? { ...line, id: said[2]?.id } : line);
}

function openCodex(): Adapter["parseLine"] {
  const dialogue = codex.open?.startDialogue(ORDER, { say() {}, close() {} });
  dialogue?.turn(ORDER, () => {});
  dialogue?.hear({ id: 1, result: {} });
  dialogue?.hear({ id: 2, result: { thread: { id: "t1" } } });
  dialogue?.hear({ id: 3, result: { turn: { id: "u1" } } });
  return (line) => dialogue?.hear(line) ?? [];
}

const update = (one: Line) => ({ method: "session/update", params: { sessionId: "s1", update: one } });
const thread = (method: string, params: Line) => ({
  method,
  params: { threadId: "t1", turnId: "u1", ...params },
});

const SPEECHES: Speech[] = [
  claudeLike("claude", claude),
  claudeLike("claude with a text as content", claude, { text: assistant }),
  claudeLike("claude that stays open", claude, {
    parse: () => {
      const dialogue = claude.open?.startDialogue(ORDER, { say() {}, close() {} });
      return (line) => dialogue?.hear(line) ?? [];
    },
  }),
  claudeLike("qwen", qwen),
  {
    name: "codex",
    adapter: codex,
    text: (text) => ({ type: "item.completed", item: { type: "agent_message", text } }),
    tool: { type: "item.started", item: { type: "command_execution", command: "true" } },
    end: (text) => [
      { type: "item.completed", item: { type: "agent_message", text } },
      { type: "turn.completed", usage: {} },
    ],
  },
  {
    name: "codex that stays open",
    adapter: codex,
    parse: openCodex,
    text: (text) => thread("item/completed", { item: { type: "agentMessage", text } }),
    tool: thread("item/started", { item: { type: "commandExecution", command: "true" } }),
    end: (text) => [
      thread("item/completed", { item: { type: "agentMessage", text } }),
      thread("turn/completed", { turn: { id: "u1", status: "completed" } }),
    ],
  },
  {
    name: "gemini",
    adapter: gemini,
    text: (content) => ({ type: "message", role: "assistant", content, delta: true }),
    tool: { type: "tool_use", tool_name: "run_shell_command", parameters: { command: "true" } },
    end: (content) => [
      { type: "message", role: "assistant", content, delta: true },
      { type: "result", status: "success", stats: {} },
    ],
  },
  {
    name: "opencode",
    adapter: opencode,
    text: (text) => ({ type: "text", part: { text } }),
    tool: { type: "tool_use", part: { tool: "bash", state: { status: "completed", input: {}, output: "" } } },
    end: (text) => [{ type: "text", part: { text } }, { type: "step_finish", part: { reason: "stop" } }],
  },
  {
    name: "copilot",
    adapter: copilot,
    text: (content) => ({ type: "assistant.message", data: { content } }),
    tool: { type: "tool.execution_start", data: { toolName: "bash", arguments: {} } },
    end: (content) => [{ type: "assistant.message", data: { content } }, { type: "result", exitCode: 0 }],
  },
  {
    name: "goose",
    adapter: goose,
    text: (text) => ({ type: "message", message: { role: "assistant", content: [{ type: "text", text }] } }),
    tool: {
      type: "message",
      message: {
        role: "assistant",
        content: [{ type: "toolRequest", toolCall: { value: { name: "shell" } } }],
      },
    },
    end: (text) => [
      { type: "message", message: { role: "assistant", content: [{ type: "text", text }] } },
      { type: "complete", total_tokens: 3, input_tokens: 1, output_tokens: 2 },
    ],
  },
  {
    name: "an agent that speaks ACP",
    adapter: claude,
    parse: openAcp,
    text: (text) => update({ sessionUpdate: "agent_message_chunk", content: { type: "text", text } }),
    tool: update({ sessionUpdate: "tool_call", toolCallId: "t", title: "Run", rawInput: {} }),
    end: (text) => [
      update({ sessionUpdate: "agent_message_chunk", content: { type: "text", text } }),
      { result: { stopReason: "end_turn" } },
    ],
  },
];

function read({ adapter, parse }: Speech, lines: readonly Line[]): OutputParser {
  const log = { path: "/dev/null", maxBytes: 1_000_000, stamped: false, now: () => 0, onWrite: () => {} };
  const output = new OutputParser({
    adapter,
    parse: parse?.() ?? adapter.parseLine,
    hasDialogue: parse !== undefined,
    sessionId: "s1",
    log: RunLog.open(log),
    events: null,
    usedBefore: USAGE_UNKNOWN,
    onEvent: () => {},
  });
  output.add("stdout", new TextEncoder().encode(lines.map((line) => `${JSON.stringify(line)}\n`).join("")));
  output.end(null);
  return output;
}

const WORDS = fc.string({ unit: "grapheme", minLength: 1, maxLength: 20 })
  .map((text) => text.replaceAll("\0", "")).filter((text) => text.trim() !== "");

describe("a turn whose final text is empty", () => {
  it.each(SPEECHES)("ends with the last words of the agent: $name", (speech) => {
    fc.assert(
      fc.property(
        fc.array(WORDS, { minLength: 1, maxLength: 4 }),
        fc.constantFrom("", " ", "\n\t\n"),
        fc.integer({ min: 1, max: 3 }),
        (texts, blank, tools) => {
          const calls = Array.from({ length: tools }, () => speech.tool);
          const lines = [...texts.flatMap((text) => [speech.text(text), ...calls]), ...speech.end(blank)];
          const output = read(speech, lines);
          expect(output.done?.ok).toBe(true);
          expect(output.text).toBe(texts.at(-1)?.trimEnd());
        },
      ),
      { seed: 37, numRuns: 50 },
    );
  });

  it.each(SPEECHES)("does not replace a final text: $name", (speech) => {
    expect(read(speech, [speech.text("I look."), speech.tool, ...speech.end("Done.")]).text).toBe("Done.");
  });

  it.each(SPEECHES)("stays empty when the agent wrote nothing: $name", (speech) => {
    expect(read(speech, [speech.tool, ...speech.end("")]).text).toBe("");
  });

  it("does not take the words of a subagent, or those of a failed turn", () => {
    const [speech] = SPEECHES as [Speech];
    const nested = { ...assistant([{ type: "text", text: "I am a subagent." }]), parent_tool_use_id: "t" };
    expect(read(speech, [speech.text("Mine."), speech.tool, nested, ...speech.end("")]).text).toBe("Mine.");
    const failed = { type: "result", subtype: "error_max_turns", is_error: true };
    expect(read(speech, [speech.text("Mine."), speech.tool, failed]).text).toBe("");
  });
});
