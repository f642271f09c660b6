import { LRUCache } from "lru-cache";
import { VERSION } from "../../base/version.ts";
import type {
  Adapter,
  AgentEvent,
  Dialogue,
  EngineFailure,
  Line,
  Link,
  Order,
  ProviderWindow,
} from "./adapter.ts";
import { isOwnCommand, PendingCalls, requestApproval, type ToolCall } from "./approvals.ts";
import { buildFailure, classifyFailure } from "./failure.ts";
import { getList, getNumber, getObject, getText } from "./json_fields.ts";
import { JsonRpcClient } from "./json_rpc.ts";

const INITIALIZE_MAX_MS = 60_000;
const SESSION_MAX_MS = 120_000;
const METHOD_NOT_FOUND = -32_601;

/** The sandbox of a thread by the engine's permissions. The arguments set the rest. */
const SANDBOX: Record<Order["permissions"], string> = {
  read: "read-only",
  edit: "workspace-write",
  ask: "workspace-write",
  full: "danger-full-access",
};

/** Calls that a person decides on with `permissions: ask`. */
const CALLS = new Set(["item/commandExecution/requestApproval", "item/fileChange/requestApproval"]);

/** Fields of such a request that say nothing about the call. */
const CALL_KEYS_HIDDEN = new Set([
  ...["kind", "threadId", "turnId", "itemId", "startedAtMs", "environmentId", "commandActions"],
  ...["proposedExecpolicyAmendment", "proposedNetworkPolicyAmendments", "availableDecisions"],
]);

/** Changed files whose approval Codex can still ask for. */
const CHANGES_KNOWN_MAX = 100;

/** Refusals of requests that need a person: without `permissions: ask`, a call beyond the permissions is never approved. */
const REFUSALS: Record<string, Line> = {
  "item/commandExecution/requestApproval": { decision: "decline" },
  "item/fileChange/requestApproval": { decision: "decline" },
  "item/tool/requestUserInput": { answers: {} },
  "mcpServer/elicitation/request": { action: "decline", content: null, _meta: null },
};

/** The item types of `codex exec` by their names in the app-server. */
const ITEMS: Record<string, string> = {
  agentMessage: "agent_message",
  commandExecution: "command_execution",
  fileChange: "file_change",
  mcpToolCall: "mcp_tool_call",
  webSearch: "web_search",
};

/** Keeps `codex app-server` open on stdin and stdout with one thread (decision 0011). */
export class CodexDialogue implements Dialogue {
  #order: Order;
  readonly #say: (message: Line) => void;
  readonly #requests: JsonRpcClient;
  /** Parses a line of `codex exec`. */
  readonly #events: Adapter["parseLine"];
  #take: (events: AgentEvent[]) => void = () => {};
  #hasTurn = false;
  #threadId = "";
  #turnId = "";
  /** The turn before this one, whose late output is dropped. */
  #pastTurnId = "";
  #usage: AgentEvent[] = [];
  #interrupted = false;
  /** Number of words that Codex has not answered. */
  #steering = 0;
  /** The end of a turn, which waits for those answers. */
  #end: AgentEvent[] = [];
  /** By the id of their request. */
  readonly #calls = new PendingCalls();
  /** The changes of a file tool by their item, because the request does not have them. */
  readonly #changes = new LRUCache<string, Line[]>({ max: CHANGES_KNOWN_MAX });

  constructor(order: Order, link: Link, events: Adapter["parseLine"]) {
    this.#order = order;
    this.#events = events;
    this.#say = (message) => link.say(`${JSON.stringify(message)}\n`);
    this.#requests = new JsonRpcClient({
      say: this.#say,
      refused: (error) => buildFailedTurn(classifyFailure(getText(error, "message"), "model")),
      late: (words) => this.#take(buildFailedTurn(buildFailure("setup", words))),
    });
    this.#requests.ask("initialize", {
      clientInfo: { name: "svc", title: "svc", version: VERSION },
      capabilities: null,
    }, {
      maxMs: INITIALIZE_MAX_MS,
      answered: () => {
        this.#say({ method: "initialized" });
        this.#setSkills();
        return [];
      },
    });
  }

  turn(order: Order, take: (events: AgentEvent[]) => void): void {
    this.#calls.clear();
    this.#order = order;
    this.#take = take;
    this.#hasTurn = true;
    this.#interrupted = false;
    this.#steering = 0;
    this.#end = [];
    // A first turn starts with the thread, unless the process was a spare one.
    if (this.#threadId === "") return;
    take([{ kind: "session", id: this.#threadId }]);
    this.#startTurn();
  }

  hear(line: Line): AgentEvent[] {
    const { id, method } = line;
    if (typeof method !== "string") return this.#requests.hear(line);
    if (id === undefined) return this.#onNotification(method, getObject(line, "params"));
    const params = getObject(line, "params");
    if (this.#order.permissions === "ask" && (CALLS.has(method) || isServerCall(method, params))) {
      void this.#answerCall(id, params);
      return [];
    }
    const result = REFUSALS[method];
    const error = { code: METHOD_NOT_FOUND, message: `${method} is not offered` };
    this.#say(result === undefined ? { id, error } : { id, result });
    return [];
  }

  /** Codex refuses words for a turn that has ended. */
  steer(id: string, words: string): void {
    this.#calls.afterAnswers(() => this.#steer(id, words));
  }

  #steer(id: string, words: string): void {
    if (this.#turnId === "") return void this.#take([{ kind: "steered", id, taken: false }]);
    const input = [{ type: "text", text: words, text_elements: [] }];
    const answer =
      (taken: boolean) => (): AgentEvent[] => [{ kind: "steered", id, taken }, ...this.#endSteer()];
    this.#steering++;
    this.#requests.ask("turn/steer", { threadId: this.#threadId, expectedTurnId: this.#turnId, input }, {
      answered: answer(true),
      refused: answer(false),
    });
  }

  interrupt(): void {
    this.#interrupted = true;
    this.#calls.clear();
    if (this.#turnId === "") return;
    const ignored = { answered: () => [], refused: () => [] };
    this.#requests.ask("turn/interrupt", { threadId: this.#threadId, turnId: this.#turnId }, ignored);
  }

  close(): void {
    this.#calls.clear();
    this.#requests.close();
  }

  // A thread knows the skills from its start. Without them, the run must not start.
  #setSkills(): void {
    const { skills } = this.#order;
    if (skills === null) return this.#startThread();
    this.#requests.ask("skills/extraRoots/set", { extraRoots: [skills.dir] }, {
      maxMs: INITIALIZE_MAX_MS,
      answered: () => {
        this.#startThread();
        return [];
      },
      refused: (error) =>
        buildFailedTurn(buildFailure("unsupported", `it takes no skills: ${getText(error, "message")}`)),
    });
  }

  #startThread(): void {
    const { resume, sessionId, workDir, model, permissions } = this.#order;
    const place = {
      cwd: workDir,
      ...(permissions === "ask"
        ? { approvalPolicy: "untrusted", approvalsReviewer: "user" }
        : { approvalPolicy: "never" }),
      sandbox: SANDBOX[permissions],
      ...(model === "" ? {} : { model }),
    };
    const answered = (result: Line): AgentEvent[] => {
      this.#threadId = getText(getObject(result, "thread"), "id");
      if (this.#threadId === "") {
        return buildFailedTurn(buildFailure("setup", "it started a thread without an id"));
      }
      // The turn was cancelled before it started, so the model gets no request.
      if (this.#interrupted) return buildFailedTurn(buildFailure("model", "it was cancelled"));
      if (this.#hasTurn) this.#startTurn();
      return [{ kind: "session", id: this.#threadId }];
    };
    if (!resume) return this.#requests.ask("thread/start", place, { maxMs: SESSION_MAX_MS, answered });
    this.#requests.ask("thread/resume", { threadId: sessionId, excludeTurns: true, ...place }, {
      maxMs: SESSION_MAX_MS,
      answered,
      refused: (error) => {
        const words = getText(error, "message");
        return buildFailedTurn(
          /no rollout found|not found/i.test(words)
            ? buildFailure("unknown_session", words)
            : classifyFailure(words, "setup"),
        );
      },
    });
  }

  #startTurn(): void {
    this.#turnId = "";
    this.#usage = [];
    const input = [{ type: "text", text: this.#order.prompt, text_elements: [] }];
    this.#requests.ask("turn/start", { threadId: this.#threadId, input }, {
      answered: (result) => {
        this.#turnId = getText(getObject(result, "turn"), "id");
        if (this.#interrupted) this.interrupt();
        return [];
      },
    });
  }

  #onNotification(method: string, params: Line): AgentEvent[] {
    if (method === "account/rateLimits/updated") {
      const limits = getObject(params, "rateLimits");
      const windows = parseWindows(limits, ["usedPercent", "windowDurationMins", "resetsAt"]);
      return windows.length === 0 ? [] : [{ kind: "windows", windows }];
    }
    if (method === "serverRequest/resolved") this.#calls.drop(String(params.requestId));
    if (method === "item/started") this.#noteChanges(getObject(params, "item"));
    // Subagents have other threads.
    if (getText(params, "threadId") !== this.#threadId) return [];
    const turnId = getText(params, "turnId") || getText(getObject(params, "turn"), "id");
    if (turnId !== "" && turnId === this.#pastTurnId) return [];
    if (method === "item/started") return this.#events({ type: "item.started", item: convertItem(params) });
    if (method === "item/completed") {
      return this.#events({ type: "item.completed", item: convertItem(params) });
    }
    if (method === "warning") return [{ kind: "notice", text: getText(params, "message") }];
    if (method === "error") return this.#events({ type: "error", message: formatError(params) });
    if (method === "thread/tokenUsage/updated") {
      const total = getObject(getObject(params, "tokenUsage"), "total");
      const usage = {
        input_tokens: getNumber(total, "inputTokens"),
        output_tokens: getNumber(total, "outputTokens"),
      };
      this.#usage = [{ kind: "usage", span: "session", usage }];
    }
    return method === "turn/completed" ? this.#onCompleted(getObject(params, "turn")) : [];
  }

  #noteChanges(item: Line): void {
    if (getText(item, "type") === "fileChange") {
      this.#changes.set(getText(item, "id"), getList(item, "changes"));
    }
  }

  async #answerCall(id: unknown, params: Line): Promise<void> {
    const order = this.#order;
    const call = buildCall(params, this.#changes.get(getText(params, "itemId")));
    const decide = async (signal: AbortSignal) => {
      if (call === null) return { allowed: false, reason: "its changes are unknown" };
      if (isOwnCommand(order.ctl, stripShell(getText(params, "command")))) {
        return { allowed: true, reason: "" };
      }
      return await requestApproval(order, call, signal);
    };
    await this.#calls.answer(String(id), decide, ({ allowed, reason }) => {
      const words = allowed ? "accept" : "decline";
      const isOfServer = typeof params.serverName === "string";
      this.#say({
        id,
        result: isOfServer ? { action: words, content: {}, _meta: null } : { decision: words },
      });
      if (reason === "") return;
      this.#take([{
        kind: "notice",
        text: `${call?.tool} was ${allowed ? "allowed" : "denied"}: ${reason}`,
      }]);
    });
  }

  #endSteer(): AgentEvent[] {
    this.#steering--;
    return this.#steering === 0 ? this.#end : [];
  }

  #onCompleted(turn: Line): AgentEvent[] {
    const status = getText(turn, "status");
    this.#calls.clear();
    this.#turnId = "";
    this.#pastTurnId = getText(turn, "id");
    if (status === "completed") {
      this.#end = [...this.#usage, { kind: "done", ok: true, text: null, failure: null }];
      return this.#steering === 0 ? this.#end : [];
    }
    const words = getText(getObject(turn, "error"), "message") || `its turn is ${status}`;
    return [...this.#usage, ...buildFailedTurn(classifyFailure(words, "model"))];
  }
}

/** Whether Codex asks for the call of a tool of an MCP server. Questions of a server itself are refused. */
function isServerCall(method: string, params: Line): boolean {
  return method === "mcpServer/elicitation/request" &&
    getText(getObject(params, "_meta"), "codex_approval_kind") === "mcp_tool_call";
}

/** Returns a call as people see it, or null for changes without a known item. */
function buildCall(params: Line, changes: Line[] | undefined): ToolCall | null {
  if (typeof params.serverName === "string") {
    const meta = getObject(params, "_meta");
    return { tool: `${params.serverName}.${getText(meta, "tool_name")}`, input: meta.tool_params };
  }
  const shown = Object.entries(params).filter(([name, value]) =>
    !CALL_KEYS_HIDDEN.has(name) && value !== null
  );
  const input = Object.fromEntries(shown);
  if (typeof params.command === "string") return { tool: "shell", input };
  if (changes === undefined) return null;
  const [only] = changes;
  const kind = getObject(only ?? {}, "kind");
  const path = changes.length === 1 && typeof kind.move_path !== "string" ? getText(only ?? {}, "path") : "";
  return { tool: "edit", input: { ...input, changes }, ...(path === "" ? {} : { path }) };
}

function buildFailedTurn(failure: EngineFailure): AgentEvent[] {
  return [{ kind: "done", ok: false, text: "", failure }];
}

/** Converts the item of a notification to an item of `codex exec`. */
function convertItem(params: Line): Line {
  const item = getObject(params, "item");
  const changes = getList(item, "changes").map((change) => ({
    ...change,
    kind: getText(getObject(change, "kind"), "type"),
  }));
  return {
    ...item,
    changes,
    type: ITEMS[getText(item, "type")] ?? "",
    aggregated_output: item.aggregatedOutput,
  };
}

/** Formats an error as `codex exec` does. */
function formatError(params: Line): string {
  const error = getObject(params, "error");
  const details = getText(error, "additionalDetails");
  const words = `${getText(error, "message")}${details === "" ? "" : ` (${details})`}`;
  return params.willRetry === true && !words.startsWith("Reconnecting") ? `Reconnecting: ${words}` : words;
}

/** Parses the provider's windows. `keys` name the percentage, the length in minutes and the end in Unix seconds. */
export function parseWindows(
  limits: Line,
  keys: [used: string, minutes: string, resets: string],
): ProviderWindow[] {
  const [used, minutes, resets] = keys;
  return ["primary", "secondary"].flatMap((name) => {
    const window = getObject(limits, name);
    if (typeof window[used] !== "number") return [];
    const resetsAt = getNumber(window, resets);
    return [{
      name: formatWindowName(getNumber(window, minutes)) || name,
      utilization: window[used] / 100,
      resets_at: resetsAt > 0 ? resetsAt * 1000 : null,
    }];
  });
}

/** Formats the length of a window as its name. Returns "" for 0 minutes. */
function formatWindowName(minutes: number): string {
  if (minutes === 0) return "";
  return minutes % 1_440 === 0
    ? `${minutes / 1_440}d`
    : minutes % 60 === 0
    ? `${minutes / 60}h`
    : `${minutes}m`;
}

/** Returns the command inside a call of a shell. */
export function stripShell(command: string): string {
  return /^\S*\b(?:ba|z)?sh -l?c '([\s\S]*)'$/.exec(command)?.[1]?.replaceAll(`'"'"'`, "'").replaceAll(
    `'\\''`,
    "'",
  ) ??
    command;
}
