import type { AgentEvent, Line } from "./adapter.ts";
import { contentText, inputText, objectAt, textAt } from "./json_fields.ts";

/** What a `session/update` of the Agent Client Protocol means; nothing for a kind that is new or only for an editor. */
export function updateEvents(update: Line): AgentEvent[] {
  switch (textAt(update, "sessionUpdate")) {
    case "agent_message_chunk": {
      const text = contentText(update.content);
      return text === "" ? [] : [{ kind: "text", text, mode: "piece" }];
    }
    case "tool_call": {
      const name = textAt(update, "title") || textAt(update, "kind") || "tool";
      return [{ kind: "tool_start", name, input: inputText(update.rawInput) }, ...endOf(update)];
    }
    case "tool_call_update":
      return endOf(update);
    case "notice":
      return [{ kind: "notice", text: textAt(update, "text") || contentText(update.content) }];
    case "usage_update":
      return costOf(objectAt(update, "cost"));
    default:
      return [];
  }
}

function endOf(update: Line): AgentEvent[] {
  const status = textAt(update, "status");
  if (status !== "completed" && status !== "failed") return [];
  const output = contentText(update.content) || outputText(update.rawOutput);
  return [{ kind: "tool_end", output, ok: status === "completed" }];
}

function outputText(raw: unknown): string {
  return raw === undefined || raw === null ? "" : typeof raw === "string" ? raw : JSON.stringify(raw);
}

function costOf({ amount, currency }: Line): AgentEvent[] {
  if (typeof amount !== "number" || currency !== "USD") return [];
  return [{ kind: "usage", span: "session", usage: { cost_usd: amount } }];
}
