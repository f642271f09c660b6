import { LRUCache } from "lru-cache";
import { VERSION } from "../base/version.ts";
import { elicited, permitted } from "./acp_ask.ts";
import { updateEvents } from "./acp_events.ts";
import {
  type AgentEvent,
  BRIDGE_VARIABLES,
  type Dialogue,
  type EngineFailure,
  type Line,
  type Link,
  type OpenDialogue,
  type Order,
} from "./adapter.ts";
import { failureFrom, failureOfKind } from "./failure.ts";
import { isObject, numberAt, objectAt, textAt } from "./line.ts";
import { Requests } from "./requests.ts";

const PROTOCOL_VERSION = 1;
const INITIALIZE_MAX_MS = 60_000;
const SESSION_MAX_MS = 120_000;
/** After a session was loaded, some agents tell its past a moment longer (decision 0011). */
const REPLAY_QUIET_MS = 500;
const TOOLS_KNOWN_MAX = 1_000;
const AUTH_REQUIRED = -32_000;
const METHOD_NOT_FOUND = -32_601;
const INTERNAL_ERROR = -32_603;

/**
 * An agent that speaks the Agent Client Protocol, version 1, on stdin and stdout: one turn, or with `stays` one after the other
 * (decision 0011).
 */
export class AcpDialogue implements Dialogue, OpenDialogue {
  #order: Order;
  #link: Link;
  readonly #stays: boolean;
  readonly #requests = new Requests((message) => this.#say(message));
  /** Aborts when nobody is asked anything any more. */
  #stopped = new AbortController();
  #ended = false;
  /** Tools that were shown when the agent asked for them. */
  readonly #shown = new LRUCache<string, true>({ max: TOOLS_KNOWN_MAX });
  #capabilities: Line = {};
  #sessionId = "";
  #replay: ReturnType<typeof setTimeout> | undefined;
  #replaying = false;

  constructor(order: Order, link: Link, stays = false) {
    this.#order = order;
    this.#link = link;
    this.#stays = stays;
    this.#request("initialize", {
      protocolVersion: PROTOCOL_VERSION,
      clientCapabilities: {
        fs: { readTextFile: false, writeTextFile: false },
        terminal: false,
        elicitation: { form: {} },
      },
      clientInfo: { name: "svc", version: VERSION },
    }, { answered: (result) => this.#initialized(result), maxMs: INITIALIZE_MAX_MS });
  }

  /** What a line of the agent means. */
  hear(line: Line): AgentEvent[] {
    const { id, method } = line;
    if (typeof method === "string") {
      const params = objectAt(line, "params");
      if (id === undefined || id === null) return this.#notified(method, params);
      // Whatever it asks for, it gets an answer.
      void this.#answer(id, method, params).catch((error) =>
        this.#say({ id, error: { code: INTERNAL_ERROR, message: String(error) } })
      );
      return [];
    }
    return this.#requests.hear(line);
  }

  turn(order: Order, take: Link["take"]): void {
    this.#order = order;
    this.#link = { ...this.#link, take };
    this.#stopped = new AbortController();
    // The first one begins when there is a session.
    if (this.#sessionId === "") return;
    take([{ kind: "session", id: this.#sessionId }]);
    this.#prompt();
  }

  interrupt(): void {
    this.cancel();
  }

  /** Asks the agent to end its turn; it is ended by signals as well. */
  cancel(): void {
    this.#stopped.abort();
    if (this.#sessionId === "") return;
    this.#say({ method: "session/cancel", params: { sessionId: this.#sessionId } });
  }

  /** The process has ended: nobody waits for anything any more. */
  close(): void {
    this.#ended = true;
    this.#stopped.abort();
    clearTimeout(this.#replay);
    this.#requests.close();
  }

  #initialized(result: Line): AgentEvent[] {
    const version = result.protocolVersion;
    if (version !== PROTOCOL_VERSION) {
      return this.#failed(
        failureOfKind("setup", `it speaks version ${version} of the Agent Client Protocol; 1 is needed`),
      );
    }
    this.#capabilities = objectAt(result, "agentCapabilities");
    return this.#order.resume ? this.#resume() : this.#begin();
  }

  #begin(): AgentEvent[] {
    this.#request("session/new", this.#place(), {
      answered: (result) => {
        const id = textAt(result, "sessionId");
        if (id === "") return this.#failed(failureOfKind("setup", "it began a session without an id"));
        this.#sessionId = id;
        this.#prompt();
        return [{ kind: "session", id }];
      },
      maxMs: SESSION_MAX_MS,
    });
    return [];
  }

  #resume(): AgentEvent[] {
    const { sessionId } = this.#order;
    const resumes = isObject(objectAt(this.#capabilities, "sessionCapabilities").resume);
    if (!resumes && this.#capabilities.loadSession !== true) {
      return this.#failed(failureOfKind("unknown_session", "it cannot go on with a session"));
    }
    this.#replaying = !resumes;
    this.#request(resumes ? "session/resume" : "session/load", { sessionId, ...this.#place() }, {
      answered: () => {
        this.#sessionId = sessionId;
        if (resumes) this.#prompt();
        else this.#waitForQuiet();
        return [{ kind: "session", id: sessionId }];
      },
      refused: ({ code, message }) => {
        const words = String(message);
        return this.#failed(
          code === AUTH_REQUIRED ? failureOfKind("auth", words) : failureOfKind("unknown_session", words),
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
    // Cancelled before it could begin: nothing is asked of a model.
    if (this.#stopped.signal.aborted) {
      return this.#link.take(this.#done({ stopReason: "cancelled" }));
    }
    this.#request("session/prompt", {
      sessionId: this.#sessionId,
      prompt: [{ type: "text", text: this.#order.prompt }],
    }, { answered: (result) => this.#done(result) });
  }

  #done(result: Line): AgentEvent[] {
    const reason = textAt(result, "stopReason");
    const failure = FAILED_TURNS.has(reason)
      ? failureOfKind("model", `it ended its turn with ${reason}`)
      : null;
    if (!this.#stays) this.#link.close();
    const notice: AgentEvent[] = failure === null && reason !== "end_turn"
      ? [{ kind: "notice", text: `it ended its turn with ${reason}` }]
      : [];
    return [...notice, ...usageOf(result), { kind: "done", ok: failure === null, text: null, failure }];
  }

  #failed(failure: EngineFailure): AgentEvent[] {
    this.#link.close();
    return [{ kind: "done", ok: false, text: null, failure }];
  }

  #notified(method: string, params: Line): AgentEvent[] {
    const own = this.#sessionId !== "" && textAt(params, "sessionId") === this.#sessionId;
    if (method !== "session/update" || !own) return [];
    if (!this.#replaying) return this.#updated(objectAt(params, "update"));
    this.#waitForQuiet();
    return [];
  }

  // Some agents show a tool for the first time when they ask for it.
  #updated(update: Line): AgentEvent[] {
    const id = textAt(update, "toolCallId");
    if (textAt(update, "sessionUpdate") !== "tool_call" || id === "") return updateEvents(update);
    return this.#shown.delete(id) ? updateEvents(update).slice(1) : updateEvents(update);
  }

  #show(call: Line): void {
    const id = textAt(call, "toolCallId");
    if (id === "") return;
    this.#shown.set(id, true);
    this.#link.take(updateEvents({ ...call, sessionUpdate: "tool_call" }).slice(0, 1));
  }

  async #answer(id: unknown, method: string, params: Line): Promise<void> {
    const { signal } = this.#stopped;
    if (method === "session/request_permission") {
      this.#show(objectAt(params, "toolCall"));
      const outcome = await permitted(this.#order, params, signal);
      return this.#say({ id, result: { outcome } });
    }
    if (method === "elicitation/create") {
      return this.#say({ id, result: await elicited(this.#order, params, signal) });
    }
    this.#say({ id, error: { code: METHOD_NOT_FOUND, message: `${method} is not offered` } });
  }

  #place(): Line {
    const { tools, workDir } = this.#order;
    if (this.#stays) return { cwd: workDir, mcpServers: tools === null ? [] : [this.#bridge()] };
    const http = objectAt(this.#capabilities, "mcpCapabilities").http === true;
    const servers = tools === null || !http ? [] : [{
      type: "http",
      name: "svc",
      url: tools.url,
      headers: [{ name: "Authorization", value: `Bearer ${tools.token}` }],
    }];
    return { cwd: workDir, mcpServers: servers };
  }

  // Its own process has the environment of its first run: the bridge reads the token of each.
  #bridge(): Line {
    const { ctl, env } = this.#order;
    const own = BRIDGE_VARIABLES.map((name) => ({ name, value: env[name] ?? "" }));
    return { name: "svc", command: ctl, args: ["mcp"], env: own };
  }

  #request(
    method: string,
    params: Line,
    { answered, refused = (error) => this.#failed(failureOf(error)), maxMs }: {
      answered: (result: Line) => AgentEvent[];
      refused?: (error: Line) => AgentEvent[];
      maxMs?: number;
    },
  ): void {
    const late = (words: string) => this.#link.take(this.#failed(failureOfKind("setup", words)));
    this.#requests.ask(method, params, { answered, refused, maxMs, late });
  }

  #say(message: Line): void {
    if (!this.#ended) this.#link.say(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  }
}

const FAILED_TURNS = new Set(["refusal", "cancelled"]);

function failureOf(error: Line): EngineFailure {
  const { code, data } = error;
  const more = data === undefined ? "" : `: ${typeof data === "string" ? data : JSON.stringify(data)}`;
  const words = `${textAt(error, "message")}${more}`;
  return code === AUTH_REQUIRED ? failureOfKind("auth", words) : failureFrom(words, "model");
}

// No version of the protocol has settled it yet: totals of the session, or of this prompt (decision 0011).
function usageOf(result: Line): AgentEvent[] {
  const total = objectAt(result, "usage");
  const own = objectAt(objectAt(objectAt(result, "_meta"), "quota"), "token_count");
  const events: AgentEvent[] = [];
  if (typeof total.inputTokens === "number") {
    const usage = { input_tokens: total.inputTokens, output_tokens: numberAt(total, "outputTokens") };
    events.push({ kind: "usage", span: "session", usage });
  } else if (typeof own.input_tokens === "number") {
    const usage = { input_tokens: own.input_tokens, output_tokens: numberAt(own, "output_tokens") };
    events.push({ kind: "usage", span: "run", usage });
  }
  return events;
}
