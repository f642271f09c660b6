import { LRUCache } from "lru-cache";
import { VERSION } from "../../base/version.ts";
import { answerForm, answerPermission } from "./acp_questions.ts";
import {
  type AgentEvent,
  BRIDGE_VARIABLES,
  type Dialogue,
  type EngineFailure,
  type Line,
  type Link,
  type Order,
  type WorkerServer,
} from "./adapter.ts";
import { buildFailure, classifyFailure } from "./failure.ts";
import { formatContent, formatInput, getNumber, getObject, getText, isObject } from "./json_fields.ts";
import { JsonRpcClient } from "./json_rpc.ts";

const PROTOCOL_VERSION = 1;
const INITIALIZE_MAX_MS = 60_000;
const SESSION_MAX_MS = 120_000;
/** Agents may replay the history of a session for a moment after loading it (decision 0011). */
const REPLAY_QUIET_MS = 500;
const TOOLS_KNOWN_MAX = 1_000;
/** Calls whose description is kept for a permission request without one. A description may be long. */
const CALLS_KNOWN_MAX = 50;
const AUTH_REQUIRED = -32_000;
const METHOD_NOT_FOUND = -32_601;
const INTERNAL_ERROR = -32_603;

/** Speaks version 1 of the Agent Client Protocol with an agent on stdin and stdout: one turn, or several with `stays` (decision 0011). */
export class AcpDialogue implements Dialogue {
  #order: Order;
  readonly #link: Link;
  #take: (events: AgentEvent[]) => void = () => {};
  #hasTurn = false;
  readonly #stays: boolean;
  readonly #requests = new JsonRpcClient({
    say: (message) => this.#say(message),
    refused: (error) => this.#fail(classifyError(error)),
    late: (words) => this.#take(this.#fail(buildFailure("setup", words))),
  });
  /** Aborts the open questions to a person. */
  #stopped = new AbortController();
  #ended = false;
  /** Tools that the log showed at a permission request. */
  readonly #shown = new LRUCache<string, true>({ max: TOOLS_KNOWN_MAX });
  /** The descriptions of the latest calls, by their id. */
  readonly #calls = new LRUCache<string, Line>({ max: CALLS_KNOWN_MAX });
  #capabilities: Line = {};
  #sessionId = "";
  #replay: ReturnType<typeof setTimeout> | undefined;
  #replaying = false;

  constructor(order: Order, link: Link, stays = false) {
    this.#order = order;
    this.#link = link;
    this.#stays = stays;
    this.#requests.ask("initialize", {
      protocolVersion: PROTOCOL_VERSION,
      clientCapabilities: {
        fs: { readTextFile: false, writeTextFile: false },
        terminal: false,
        elicitation: { form: {} },
      },
      clientInfo: { name: "svc", version: VERSION },
    }, { answered: (result) => this.#onInitialized(result), maxMs: INITIALIZE_MAX_MS });
  }

  hear(line: Line): AgentEvent[] {
    const { id, method } = line;
    if (typeof method === "string") {
      const params = getObject(line, "params");
      if (id === undefined || id === null) return this.#onNotification(method, params);
      // Every request gets an answer, or the agent would wait for it.
      void this.#answer(id, method, params).catch((error) =>
        this.#say({ id, error: { code: INTERNAL_ERROR, message: String(error) } })
      );
      return [];
    }
    return this.#requests.hear(line);
  }

  turn(order: Order, take: (events: AgentEvent[]) => void): void {
    this.#order = order;
    this.#take = take;
    this.#hasTurn = true;
    this.#stopped = new AbortController();
    // A first turn starts with the session, unless the process was a spare one.
    if (this.#sessionId === "") return;
    take([{ kind: "session", id: this.#sessionId }]);
    this.#prompt();
  }

  interrupt(): void {
    this.#stopped.abort();
    if (this.#sessionId === "") return;
    this.#say({ method: "session/cancel", params: { sessionId: this.#sessionId } });
  }

  close(): void {
    this.#ended = true;
    this.#stopped.abort();
    clearTimeout(this.#replay);
    this.#requests.close();
  }

  #onInitialized(result: Line): AgentEvent[] {
    const version = result.protocolVersion;
    if (version !== PROTOCOL_VERSION) {
      return this.#fail(
        buildFailure("setup", `it speaks version ${version} of the Agent Client Protocol; 1 is needed`),
      );
    }
    this.#capabilities = getObject(result, "agentCapabilities");
    const missing = this.#order.servers.find((server) => "url" in server && !this.#takesHttp);
    if (missing !== undefined) {
      return this.#fail(
        buildFailure("unsupported", `it has no MCP over HTTP, which the server ${missing.name} needs`),
      );
    }
    return this.#order.resume ? this.#resume() : this.#startSession();
  }

  #startSession(): AgentEvent[] {
    this.#requests.ask("session/new", this.#buildSession(), {
      answered: (result) => {
        const id = getText(result, "sessionId");
        if (id === "") return this.#fail(buildFailure("setup", "it started a session without an id"));
        this.#sessionId = id;
        if (this.#hasTurn) this.#prompt();
        return [{ kind: "session", id }];
      },
      maxMs: SESSION_MAX_MS,
    });
    return [];
  }

  #resume(): AgentEvent[] {
    const { sessionId } = this.#order;
    const resumes = isObject(getObject(this.#capabilities, "sessionCapabilities").resume);
    if (!resumes && this.#capabilities.loadSession !== true) {
      return this.#fail(buildFailure("unknown_session", "it cannot resume a session"));
    }
    this.#replaying = !resumes;
    this.#requests.ask(resumes ? "session/resume" : "session/load", { sessionId, ...this.#buildSession() }, {
      answered: () => {
        this.#sessionId = sessionId;
        if (resumes) this.#prompt();
        else this.#waitForQuiet();
        return [{ kind: "session", id: sessionId }];
      },
      refused: ({ code, message }) => {
        const words = String(message);
        return this.#fail(
          code === AUTH_REQUIRED ? buildFailure("auth", words) : buildFailure("unknown_session", words),
        );
      },
      maxMs: SESSION_MAX_MS,
    });
    return [];
  }

  #waitForQuiet(): void {
    clearTimeout(this.#replay);
    this.#replay = setTimeout(() => {
      this.#replaying = false;
      this.#prompt();
    }, REPLAY_QUIET_MS);
  }

  #prompt(): void {
    // The turn was cancelled before it started, so the model gets no request.
    if (this.#stopped.signal.aborted) {
      return this.#take(this.#onDone({ stopReason: "cancelled" }));
    }
    this.#requests.ask("session/prompt", {
      sessionId: this.#sessionId,
      prompt: [{ type: "text", text: this.#order.prompt }],
    }, { answered: (result) => this.#onDone(result) });
  }

  #onDone(result: Line): AgentEvent[] {
    const reason = getText(result, "stopReason");
    const failure = FAILED_TURNS.has(reason)
      ? buildFailure("model", `it ended its turn with ${reason}`)
      : null;
    this.#link.close();
    const notice: AgentEvent[] = failure === null && reason !== "end_turn"
      ? [{ kind: "notice", text: `it ended its turn with ${reason}` }]
      : [];
    return [...notice, ...parseUsage(result), { kind: "done", ok: failure === null, text: null, failure }];
  }

  #fail(failure: EngineFailure): AgentEvent[] {
    this.#link.close();
    return [{ kind: "done", ok: false, text: null, failure }];
  }

  #onNotification(method: string, params: Line): AgentEvent[] {
    const own = this.#sessionId !== "" && getText(params, "sessionId") === this.#sessionId;
    if (method !== "session/update" || !own) return [];
    if (!this.#replaying) return this.#onUpdate(getObject(params, "update"));
    this.#waitForQuiet();
    return [];
  }

  // Agents may show a tool for the first time in their permission request.
  #onUpdate(update: Line): AgentEvent[] {
    const id = getText(update, "toolCallId");
    this.#note(id, update);
    if (getText(update, "sessionUpdate") !== "tool_call" || id === "") return parseUpdate(update);
    return this.#shown.delete(id) ? parseUpdate(update).slice(1) : parseUpdate(update);
  }

  // A permission request may omit fields of an earlier message.
  #note(id: string, update: Line): void {
    if (id === "") return;
    const { title, rawInput, content, locations } = update;
    const said = Object.entries({ title, rawInput, content, locations }).filter(([, value]) =>
      value !== undefined && value !== null
    );
    this.#calls.set(id, { ...this.#calls.get(id), ...Object.fromEntries(said) });
  }

  #show(call: Line): void {
    const id = getText(call, "toolCallId");
    if (id === "") return;
    this.#shown.set(id, true);
    this.#take(parseUpdate({ ...call, sessionUpdate: "tool_call" }).slice(0, 1));
  }

  async #answer(id: unknown, method: string, params: Line): Promise<void> {
    const { signal } = this.#stopped;
    if (method === "session/request_permission") {
      const call = getObject(params, "toolCall");
      this.#show(call);
      const known = this.#calls.get(getText(call, "toolCallId"));
      const outcome = await answerPermission(this.#order, params, signal, known);
      return this.#say({ id, result: { outcome } });
    }
    if (method === "elicitation/create") {
      return this.#say({ id, result: await answerForm(this.#order, params, signal) });
    }
    this.#say({ id, error: { code: METHOD_NOT_FOUND, message: `${method} is not offered` } });
  }

  get #takesHttp(): boolean {
    return getObject(this.#capabilities, "mcpCapabilities").http === true;
  }

  #buildSession(): Line {
    const { workDir, servers } = this.#order;
    const own = this.#stays ? this.#buildBridge() : this.#buildToolServer();
    const others = servers.map((server) => this.#buildServer(server));
    return { cwd: workDir, mcpServers: [...own, ...others] };
  }

  #buildToolServer(): Line[] {
    const { tools } = this.#order;
    if (tools === null || !this.#takesHttp) return [];
    const headers = [{ name: "Authorization", value: `Bearer ${tools.token}` }];
    return [{ type: "http", name: "svc", url: tools.url, headers }];
  }

  #buildServer(server: WorkerServer): Line {
    const { env } = this.#order;
    const { name } = server;
    if ("program" in server) {
      // An agent may pass on no variables.
      const all = Object.entries(env).map(([name, value]) => ({ name, value }));
      return { name, command: server.program, args: [], env: all };
    }
    const headers = Object.entries(server.headers).map(([name, from]) => ({ name, value: env[from] ?? "" }));
    return { type: "http", name, url: server.url, headers };
  }

  // A process that stays has the environment of its first run. The bridge reads the token of the current run from a file.
  #buildBridge(): Line[] {
    const { tools, ctl, env } = this.#order;
    if (tools === null) return [];
    const own = BRIDGE_VARIABLES.map((name) => ({ name, value: env[name] ?? "" }));
    return [{ name: "svc", command: ctl, args: ["mcp"], env: own }];
  }

  #say(message: Line): void {
    if (!this.#ended) this.#link.say(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  }
}

const FAILED_TURNS = new Set(["refusal", "cancelled"]);

function classifyError(error: Line): EngineFailure {
  const { code, data } = error;
  const more = data === undefined ? "" : `: ${typeof data === "string" ? data : JSON.stringify(data)}`;
  const words = `${getText(error, "message")}${more}`;
  return code === AUTH_REQUIRED ? buildFailure("auth", words) : classifyFailure(words, "model");
}

// The protocol does not define usage yet: some agents report totals of the session, others of this prompt (decision 0011).
function parseUsage(result: Line): AgentEvent[] {
  const total = getObject(result, "usage");
  const own = getObject(getObject(getObject(result, "_meta"), "quota"), "token_count");
  const events: AgentEvent[] = [];
  if (typeof total.inputTokens === "number") {
    const usage = { input_tokens: total.inputTokens, output_tokens: getNumber(total, "outputTokens") };
    events.push({ kind: "usage", span: "session", usage });
  } else if (typeof own.input_tokens === "number") {
    const usage = { input_tokens: own.input_tokens, output_tokens: getNumber(own, "output_tokens") };
    events.push({ kind: "usage", span: "run", usage });
  }
  return events;
}

/** Parses a `session/update` of the Agent Client Protocol. Unknown kinds and kinds for editors have no events. */
function parseUpdate(update: Line): AgentEvent[] {
  switch (getText(update, "sessionUpdate")) {
    case "agent_message_chunk": {
      const text = formatContent(update.content);
      return text === "" ? [] : [{ kind: "text", text, mode: "piece" }];
    }
    case "tool_call": {
      const name = getText(update, "title") || getText(update, "kind") || "tool";
      return [{ kind: "tool_start", name, input: formatInput(update.rawInput) }, ...parseToolEnd(update)];
    }
    case "tool_call_update":
      return parseToolEnd(update);
    case "notice":
      return [{ kind: "notice", text: getText(update, "text") || formatContent(update.content) }];
    case "usage_update":
      return parseCost(getObject(update, "cost"));
    default:
      return [];
  }
}

function parseToolEnd(update: Line): AgentEvent[] {
  const status = getText(update, "status");
  if (status !== "completed" && status !== "failed") return [];
  const output = formatContent(update.content) || formatOutput(update.rawOutput);
  return [{ kind: "tool_end", output, ok: status === "completed" }];
}

function formatOutput(raw: unknown): string {
  return raw === undefined || raw === null ? "" : typeof raw === "string" ? raw : JSON.stringify(raw);
}

function parseCost({ amount, currency }: Line): AgentEvent[] {
  if (typeof amount !== "number" || currency !== "USD") return [];
  return [{ kind: "usage", span: "session", usage: { cost_usd: amount } }];
}
