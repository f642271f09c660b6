import type { AgentEvent, Dialogue, Line, Link, Order } from "./adapter.ts";
import { PendingCalls, requestApproval } from "./approvals.ts";
import { getNumber, getObject, getText } from "./json_fields.ts";

const FILE_TOOLS = new Set(["Read", "Write", "Edit", "MultiEdit", "NotebookEdit"]);
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
  #order: Order | null = null;
  #take: (events: AgentEvent[]) => void = () => {};
  /** By the id of their request. */
  readonly #calls = new PendingCalls();

  constructor(link: Link, parse: (line: Line) => AgentEvent[]) {
    this.#link = link;
    this.#parse = parse;
  }

  // Claude Code loads its settings and starts its tools meanwhile.
  prepare(): void {
    this.#say({ type: "control_request", request_id: PREPARE, request: { subtype: "initialize" } });
  }

  turn(order: Order, take: (events: AgentEvent[]) => void): void {
    const { prompt } = order;
    this.#calls.clear();
    this.#order = order;
    this.#take = take;
    this.#waiting.clear();
    this.#answers = [];
    this.#counted = {};
    this.#write(prompt, {});
  }

  steer(id: string, words: string): void {
    this.#calls.afterAnswers(() => {
      this.#waiting.add(id);
      this.#write(words, { uuid: id });
    });
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
    const type = getText(line, "type");
    if (type === "control_request") return this.#onRequest(line);
    if (type === "control_cancel_request") {
      this.#calls.drop(getText(line, "request_id"));
      return [];
    }
    return type === "result" ? this.#onResult(line) : this.#parse(line);
  }

  interrupt(): void {
    this.#calls.clear();
    this.#say({ type: "control_request", request_id: "end", request: { subtype: "interrupt" } });
  }

  close(): void {
    this.#calls.clear();
  }

  #onRequest(line: Line): AgentEvent[] {
    const request = getObject(line, "request");
    const id = getText(line, "request_id");
    if (getText(request, "subtype") === "can_use_tool") void this.#answerCall(id, request);
    // Every request gets an answer, or Claude Code would wait for it.
    else {this.#say({
        type: "control_response",
        response: { subtype: "error", request_id: id, error: "not offered" },
      });}
    return [];
  }

  async #answerCall(id: string, request: Line): Promise<void> {
    const input = getObject(request, "input");
    const tool = getText(request, "tool_name");
    await this.#calls.answer(id, (signal) => this.#decide(tool, input, signal), ({ allowed, reason }) => {
      const response = allowed
        ? { behavior: "allow", updatedInput: input }
        : { behavior: "deny", message: `This call was not allowed: ${reason}.`, interrupt: false };
      this.#say({ type: "control_response", response: { subtype: "success", request_id: id, response } });
      this.#take([{ kind: "notice", text: `${tool} was ${allowed ? "allowed" : "denied"}: ${reason}` }]);
    });
  }

  async #decide(tool: string, input: Line, signal: AbortSignal) {
    const order = this.#order;
    if (order === null || order.permissions !== "ask") {
      return { allowed: false, reason: "nobody can be asked" };
    }
    // The answer of a person would have to be in the input.
    if (tool === "AskUserQuestion") return { allowed: false, reason: "ask with `svc ctl ask` instead" };
    const path = FILE_TOOLS.has(tool) ? getText(input, "file_path") || getText(input, "notebook_path") : "";
    return await requestApproval(order, { tool, input, ...(path === "" ? {} : { path }) }, signal);
  }

  #onResult(line: Line): AgentEvent[] {
    this.#calls.clear();
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
