import { VERSION } from "../base/version.ts";
import type {
  Adapter,
  AgentEvent,
  EngineFailure,
  Line,
  OpenDialogue,
  Order,
  ProviderWindow,
} from "./adapter.ts";
import { failureFrom, failureOfKind } from "./failure.ts";
import { listAt, numberAt, objectAt, textAt } from "./line.ts";
import { Requests } from "./requests.ts";

const INITIALIZE_MAX_MS = 60_000;
const SESSION_MAX_MS = 120_000;
const METHOD_NOT_FOUND = -32_601;

/** How a process of Codex is told what it may do; the rest is in its arguments. */
const SANDBOX: Record<Order["permissions"], string> = {
  read: "read-only",
  edit: "workspace-write",
  full: "danger-full-access",
};

/** Answers to what it may ask, although nobody is there: nothing is approved that its permissions do not cover. */
const REFUSALS: Record<string, Line> = {
  "item/commandExecution/requestApproval": { decision: "decline" },
  "item/fileChange/requestApproval": { decision: "decline" },
  "item/tool/requestUserInput": { answers: {} },
  "mcpServer/elicitation/request": { action: "decline", content: null, _meta: null },
};

/** The items of `codex exec` by the names that they have here. */
const ITEMS: Record<string, string> = {
  agentMessage: "agent_message",
  commandExecution: "command_execution",
  fileChange: "file_change",
  mcpToolCall: "mcp_tool_call",
  webSearch: "web_search",
};

/** Codex that stays open: `codex app-server` on stdin and stdout, one thread of it (decision 0011). */
export class CodexDialogue implements OpenDialogue {
  #order: Order;
  readonly #say: (message: Line) => void;
  readonly #requests: Requests;
  /** What a line of `codex exec` means. */
  readonly #events: Adapter["events"];
  #take: (events: AgentEvent[]) => void = () => {};
  #threadId = "";
  #turnId = "";
  /** The turn before: what comes late of it belongs to nobody. */
  #pastTurnId = "";
  #usage: AgentEvent[] = [];
  #interrupted = false;

  constructor(order: Order, say: (text: string) => void, events: Adapter["events"]) {
    this.#order = order;
    this.#events = events;
    this.#say = (message) => say(`${JSON.stringify(message)}\n`);
    this.#requests = new Requests(this.#say);
    this.#ask("initialize", {
      clientInfo: { name: "svc", title: "svc", version: VERSION },
      capabilities: null,
    }, {
      maxMs: INITIALIZE_MAX_MS,
      answered: () => {
        this.#say({ method: "initialized" });
        this.#thread();
        return [];
      },
    });
  }

  turn(order: Order, take: (events: AgentEvent[]) => void): void {
    this.#order = order;
    this.#take = take;
    this.#interrupted = false;
    // The first one begins when there is a thread.
    if (this.#threadId === "") return;
    take([{ kind: "session", id: this.#threadId }]);
    this.#begin();
  }

  hear(line: Line): AgentEvent[] {
    const { id, method } = line;
    if (typeof method !== "string") return this.#requests.hear(line);
    if (id === undefined) return this.#notified(method, objectAt(line, "params"));
    const result = REFUSALS[method];
    const error = { code: METHOD_NOT_FOUND, message: `${method} is not offered` };
    this.#say(result === undefined ? { id, error } : { id, result });
    return [];
  }

  interrupt(): void {
    this.#interrupted = true;
    if (this.#turnId === "") return;
    const ignored = { answered: () => [], refused: () => [] };
    this.#requests.ask("turn/interrupt", { threadId: this.#threadId, turnId: this.#turnId }, ignored);
  }

  close(): void {
    this.#requests.close();
  }

  #thread(): void {
    const { resume, sessionId, workDir, model, permissions } = this.#order;
    const place = {
      cwd: workDir,
      approvalPolicy: "never",
      sandbox: SANDBOX[permissions],
      ...(model === "" ? {} : { model }),
    };
    const answered = (result: Line): AgentEvent[] => {
      this.#threadId = textAt(objectAt(result, "thread"), "id");
      if (this.#threadId === "") return failed(failureOfKind("setup", "it began a thread without an id"));
      // Cancelled before it could begin: nothing is asked of a model.
      if (this.#interrupted) return failed(failureOfKind("model", "it was cancelled"));
      this.#begin();
      return [{ kind: "session", id: this.#threadId }];
    };
    if (!resume) return this.#ask("thread/start", place, { maxMs: SESSION_MAX_MS, answered });
    this.#ask("thread/resume", { threadId: sessionId, excludeTurns: true, ...place }, {
      maxMs: SESSION_MAX_MS,
      answered,
      refused: (error) => {
        const words = textAt(error, "message");
        return failed(
          /no rollout found|not found/i.test(words)
            ? failureOfKind("unknown_session", words)
            : failureFrom(words, "setup"),
        );
      },
    });
  }

  #begin(): void {
    this.#turnId = "";
    this.#usage = [];
    const input = [{ type: "text", text: this.#order.prompt, text_elements: [] }];
    this.#ask("turn/start", { threadId: this.#threadId, input }, {
      answered: (result) => {
        this.#turnId = textAt(objectAt(result, "turn"), "id");
        if (this.#interrupted) this.interrupt();
        return [];
      },
    });
  }

  #notified(method: string, params: Line): AgentEvent[] {
    if (method === "account/rateLimits/updated") return windowsOf(objectAt(params, "rateLimits"));
    // Agents that it starts have threads of their own.
    if (textAt(params, "threadId") !== this.#threadId) return [];
    const turnId = textAt(params, "turnId") || textAt(objectAt(params, "turn"), "id");
    if (turnId !== "" && turnId === this.#pastTurnId) return [];
    if (method === "item/started") return this.#events({ type: "item.started", item: itemOf(params) });
    if (method === "item/completed") return this.#events({ type: "item.completed", item: itemOf(params) });
    if (method === "warning") return [{ kind: "notice", text: textAt(params, "message") }];
    if (method === "error") return this.#events({ type: "error", message: errorOf(params) });
    if (method === "thread/tokenUsage/updated") {
      const total = objectAt(objectAt(params, "tokenUsage"), "total");
      const usage = {
        input_tokens: numberAt(total, "inputTokens"),
        output_tokens: numberAt(total, "outputTokens"),
      };
      this.#usage = [{ kind: "usage", span: "session", usage }];
    }
    return method === "turn/completed" ? this.#completed(objectAt(params, "turn")) : [];
  }

  #completed(turn: Line): AgentEvent[] {
    const status = textAt(turn, "status");
    this.#turnId = "";
    this.#pastTurnId = textAt(turn, "id");
    if (status === "completed") {
      return [...this.#usage, { kind: "done", ok: true, text: null, failure: null }];
    }
    const words = textAt(objectAt(turn, "error"), "message") || `its turn is ${status}`;
    return [...this.#usage, ...failed(failureFrom(words, "model"))];
  }

  #ask(
    method: string,
    params: Line,
    { answered, refused = (error) => failed(failureFrom(textAt(error, "message"), "model")), maxMs }: {
      answered: (result: Line) => AgentEvent[];
      refused?: (error: Line) => AgentEvent[];
      maxMs?: number;
    },
  ): void {
    const late = (words: string) => this.#take(failed(failureOfKind("setup", words)));
    this.#requests.ask(method, params, { answered, refused, maxMs, late });
  }
}

function failed(failure: EngineFailure): AgentEvent[] {
  return [{ kind: "done", ok: false, text: "", failure }];
}

/** The item of a notification, as a line of `codex exec` has it. */
function itemOf(params: Line): Line {
  const item = objectAt(params, "item");
  const changes = listAt(item, "changes").map((change) => ({
    ...change,
    kind: textAt(objectAt(change, "kind"), "type"),
  }));
  return {
    ...item,
    changes,
    type: ITEMS[textAt(item, "type")] ?? "",
    aggregated_output: item.aggregatedOutput,
  };
}

/** The words of an error, as a line of `codex exec` has them. */
function errorOf(params: Line): string {
  const error = objectAt(params, "error");
  const details = textAt(error, "additionalDetails");
  const words = `${textAt(error, "message")}${details === "" ? "" : ` (${details})`}`;
  return params.willRetry === true && !words.startsWith("Reconnecting") ? `Reconnecting: ${words}` : words;
}

function windowsOf(limits: Line): AgentEvent[] {
  const windows = ["primary", "secondary"].flatMap((name): ProviderWindow[] => {
    const window = objectAt(limits, name);
    if (typeof window.usedPercent !== "number") return [];
    const resets = numberAt(window, "resetsAt");
    return [{
      name: windowName(numberAt(window, "windowDurationMins")) || name,
      utilization: window.usedPercent / 100,
      resets_at: resets > 0 ? resets * 1000 : null,
    }];
  });
  return windows.length === 0 ? [] : [{ kind: "windows", windows }];
}

/** How a window of so many minutes is called; "" when it says no length. */
export function windowName(minutes: number): string {
  if (minutes === 0) return "";
  return minutes % 1_440 === 0
    ? `${minutes / 1_440}d`
    : minutes % 60 === 0
    ? `${minutes / 60}h`
    : `${minutes}m`;
}
