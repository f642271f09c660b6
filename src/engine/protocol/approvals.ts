// Asks a person whether a tool call of the agent runs (contract 23).
import { digest } from "../../base/bytes.ts";
import { CALL_MAX_BYTES } from "../../domain/work/approval.ts";
import type { Line, Order } from "./adapter.ts";
import { getText, isObject } from "./json_fields.ts";
import { sendUntilAnswered, WAIT_MS } from "./own_request.ts";

/** A tool call as the agent reports it. */
export interface ToolCall {
  tool: string;
  input: unknown;
  /** The path of a file tool. The conversation then remembers the path instead of the input. */
  path?: string;
}

interface CallAnswer {
  allowed: boolean;
  /** Names the person who decided, or the cause. */
  reason: string;
}

/** The tool calls of one process that wait for a person. */
export class PendingCalls {
  readonly #calls = new Map<string, AbortController>();
  #held: (() => void)[] = [];

  /** Decides on a call and passes the answer to `say`. The answer is no if the call was dropped meanwhile. */
  async answer(
    key: string,
    decide: (signal: AbortSignal) => Promise<CallAnswer>,
    say: (answer: CallAnswer) => void,
  ): Promise<void> {
    const call = new AbortController();
    this.#calls.set(key, call);
    const given = await decide(call.signal);
    this.#calls.delete(key);
    say({ ...given, allowed: given.allowed && !call.signal.aborted });
    if (this.#calls.size === 0) { for (const action of this.#held.splice(0)) action(); }
  }

  /** Runs the action after the answers to all waiting calls: words must not change what a person decides on. */
  afterAnswers(action: () => void): void {
    if (this.#calls.size === 0) action();
    else this.#held.push(action);
  }

  /** Denies a call that the agent or the run has ended, or all of them. */
  drop(key?: string): void {
    if (key !== undefined) return this.#calls.get(key)?.abort();
    for (const call of this.#calls.values()) call.abort();
  }

  /** Denies all calls and forgets the actions after them. */
  clear(): void {
    this.#held = [];
    this.drop();
  }
}

// Options of svc ctl that read or write a file of this machine.
const FILE_OPTION = /\s-(?:[cf]|-(?:batch|ca|config|data-dir|file|media-path|program|token-file|writable))/;

/** Whether the command is one call of svc ctl and nothing else, without files. The token decides what that call may do. */
export function isOwnCommand(ctl: string, command: string): boolean {
  const [program = "", group = ""] = command.split(" ");
  const isCall = (program === "svc" || program === ctl) && group === "ctl";
  return isCall && !/[;&|<>$`()\\\n\r]/.test(command) && !FILE_OPTION.test(command);
}

const TOOL_MAX_CHARACTERS = 60;
const WITHDRAW_MAX_MS = 5_000;
const ARGUMENTS_DEPTH_MAX = 50;

/**
 * Asks the service about a call, and waits for the decision. Everything but a clear yes is a no: an unreadable call, an error, an aborted
 * signal. Never throws.
 */
export async function requestApproval(
  order: Order,
  call: ToolCall,
  signal: AbortSignal,
): Promise<CallAnswer> {
  const { env } = order;
  let id = "";
  try {
    const body = { ...buildCall(order, call), timeout_ms: order.askTimeoutMs };
    if (new TextEncoder().encode(body.arguments).length > CALL_MAX_BYTES) {
      return { allowed: false, reason: `its arguments are longer than ${CALL_MAX_BYTES / 1024} KiB` };
    }
    const key = crypto.randomUUID();
    let answer = await sendUntilAnswered(env, { method: "POST", path: "/api/approvals", body, key }, signal);
    id = getText(answer, "id");
    while (getText(answer, "decision") === "wait") {
      const path = `/api/approvals/${id}/wait?timeout_ms=${WAIT_MS}`;
      answer = await sendUntilAnswered(env, { method: "GET", path }, signal);
    }
    signal.throwIfAborted();
    return { allowed: getText(answer, "decision") === "allow", reason: getText(answer, "reason") };
  } catch (error) {
    const withdraw = { method: "POST", path: `/api/approvals/${id}/withdraw`, body: {} };
    if (id !== "") {
      void sendUntilAnswered(env, withdraw, AbortSignal.timeout(WITHDRAW_MAX_MS)).catch(() => {});
    }
    return { allowed: false, reason: signal.aborted ? "the call was dropped" : String(error) };
  }
}

function buildCall({ mask }: Order, { tool, input, path }: ToolCall) {
  const shown = JSON.stringify(maskStrings(input ?? {}, mask, 0), null, 1);
  return {
    tool: escapeInvisible(mask(tool).replace(/\s+/g, " ")).slice(0, TOOL_MAX_CHARACTERS).trim() || "a tool",
    arguments: escapeInvisible(shown),
    ...(path === undefined ? {} : { path: escapeInvisible(mask(path)) }),
    digest: digest(path ?? JSON.stringify(input ?? {})),
  };
}

// Masks before the text is JSON, which would write a secret in another way.
function maskStrings(value: unknown, mask: Order["mask"], depth: number): unknown {
  if (typeof value === "string") return mask(value);
  if (depth > ARGUMENTS_DEPTH_MAX) throw new Error("its arguments are nested too deeply");
  if (Array.isArray(value)) return value.map((one) => maskStrings(one, mask, depth + 1));
  if (!isObject(value)) return value;
  const fields: [string, unknown][] = Object.entries(value as Line).map((
    [name, below],
  ) => [mask(name), maskStrings(below, mask, depth + 1)]);
  return Object.fromEntries(fields);
}

// Characters that a person does not see, or that change the order of the others. Of these, formatted JSON has only line breaks. Variation
// selectors are among them (DI), because any text can be written in them. U+2800 is an empty Braille pattern.
const INVISIBLE = /(?! )[\p{Cc}\p{Cf}\p{Co}\p{Cn}\p{Cs}\p{Z}\p{DI}\u2800]/gu;

export function escapeInvisible(text: string): string {
  return text.replace(
    INVISIBLE,
    (one) => one === "\n" ? one : `\\u{${one.codePointAt(0)?.toString(16).padStart(4, "0")}}`,
  );
}
