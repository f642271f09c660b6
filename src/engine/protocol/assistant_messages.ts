import type { AgentEvent, Line } from "./adapter.ts";
import { formatContent, formatInput, getList, getObject, getText } from "./json_fields.ts";

/** Parses the texts and tool calls of an assistant message of Claude Code or Qwen Code. */
export function parseAssistantMessage(line: Line): AgentEvent[] {
  // The log contains tools and text of a subagent; the answer does not.
  const nested = typeof line.parent_tool_use_id === "string";
  const message = getObject(line, "message");
  // A message that has only text may be a string.
  const plain = getText(message, "content");
  const parts = plain === "" ? getList(message, "content") : [{ type: "text", text: plain }];
  return parts.flatMap((part: Line): AgentEvent[] => {
    const type = getText(part, "type");
    if (type === "tool_use") {
      return [{ kind: "tool_start", name: getText(part, "name"), input: formatInput(part.input) }];
    }
    const text = getText(part, "text");
    if (type !== "text" || text === "") return [];
    return [nested ? { kind: "notice", text: `subagent: ${text}` } : { kind: "text", text, mode: "part" }];
  });
}

export function parseToolResults(line: Line): AgentEvent[] {
  return getList(getObject(line, "message"), "content")
    .filter((part) => getText(part, "type") === "tool_result")
    .map((part) => ({ kind: "tool_end", output: formatContent(part.content), ok: part.is_error !== true }));
}
