import type { AgentEvent, Dialogue, Line, Link, Order } from "./adapter.ts";
import { getNumber, getObject, getText } from "./json_fields.ts";

const PREPARE = "prepare";

/**
 * Keeps Claude Code open on stdin and stdout. A message that arrives during a turn joins it at the next tool call. After the last tool
 * call it becomes another turn with another result, so our turn ends when Claude Code has taken up every message (facts, engines 13).
 */
export class ClaudeDialogue implements Dialogue {
  readonly #link: Link;
  readonly #parse: (line: Line) => AgentEvent[];
  /** Words that Claude Code has not taken up. */
  readonly #waiting = new Set<string>();
  /** Answers of this turn before the last one. */
  #answers: string[] = [];
  /** Tokens of the results before the last one. */
  #counted: Record<string, number> = {};

  constructor(link: Link, parse: (line: Line) => AgentEvent[]) {
    this.#link = link;
    this.#parse = parse;
  }

  // Claude Code loads its settings and starts its tools meanwhile.
  prepare(): void {
    this.#say({ type: "control_request", request_id: PREPARE, request: { subtype: "initialize" } });
  }

  turn({ prompt }: Order): void {
    this.#waiting.clear();
    this.#answers = [];
    this.#counted = {};
    this.#write(prompt, {});
  }

  steer(id: string, words: string): void {
    this.#waiting.add(id);
    this.#write(words, { uuid: id });
  }

  hear(line: Line): AgentEvent[] {
    // The result of a background task is not the answer to our prompt.
    if (getText(getObject(line, "origin"), "kind") === "task-notification") return [];
    if (getText(getObject(line, "response"), "request_id") === PREPARE) {
      return [{ kind: "session", id: null }];
    }
    const uuid = getText(line, "uuid");
    if (line.isReplay === true && this.#waiting.delete(uuid)) {
      return [{ kind: "steered", id: uuid, taken: true }];
    }
    return getText(line, "type") === "result" ? this.#onResult(line) : this.#parse(line);
  }

  interrupt(): void {
    this.#say({ type: "control_request", request_id: "end", request: { subtype: "interrupt" } });
  }

  close(): void {}

  #onResult(line: Line): AgentEvent[] {
    const usage = getObject(line, "usage");
    if (line.usage !== undefined) {
      for (const [name, value] of Object.entries(usage)) {
        if (typeof value === "number") this.#counted[name] = getNumber(this.#counted, name) + value;
      }
    }
    const events = this.#parse(
      line.usage === undefined ? line : { ...line, usage: { ...usage, ...this.#counted } },
    );
    return events.flatMap((event): AgentEvent[] => {
      if (event.kind !== "done" || !event.ok) return [event];
      if (this.#waiting.size > 0) {
        this.#answers.push(event.text ?? "");
        return [];
      }
      const text = [...this.#answers, event.text ?? ""].filter((one) => one.trim() !== "").join("\n\n");
      return [{ ...event, text }];
    });
  }

  #write(text: string, more: object): void {
    const message = { role: "user", content: [{ type: "text", text }] };
    this.#say({ type: "user", message, parent_tool_use_id: null, session_id: "", ...more });
  }

  #say(message: object): void {
    this.#link.say(`${JSON.stringify(message)}\n`);
  }
}
