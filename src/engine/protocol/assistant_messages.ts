import type { AgentEvent, Line } from "./adapter.ts";
import { contentText, inputText, listAt, objectAt, textAt } from "./json_fields.ts";

/** The texts and tool calls of an assistant's message, as Claude Code and Qwen Code write it. */
export function assistantEvents(line: Line): AgentEvent[] {
  // The tools of a subagent are shown, but its text is not part of the answer.
  const nested = typeof line.parent_tool_use_id === "string";
  return listAt(objectAt(line, "message"), "content").flatMap((part): AgentEvent[] => {
    const type = textAt(part, "type");
    if (type === "tool_use") {
      return [{ kind: "tool_start", name: textAt(part, "name"), input: inputText(part.input) }];
    }
    const text = textAt(part, "text");
    if (type !== "text" || text === "") return [];
    return [nested ? { kind: "notice", text: `subagent: ${text}` } : { kind: "text", text, mode: "part" }];
  });
}

/** The results of its tools. */
export function toolResults(line: Line): AgentEvent[] {
  return listAt(objectAt(line, "message"), "content")
    .filter((part) => textAt(part, "type") === "tool_result")
    .map((part) => ({ kind: "tool_end", output: contentText(part.content), ok: part.is_error !== true }));
}
