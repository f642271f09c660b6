// What an agent asks for becomes a question to a person, whose default is to refuse (contract 12, contract 17)
import { setTimeout as pause } from "node:timers/promises";
import { RUN_QUESTIONS_MAX } from "../../domain/question.ts";
import type { Line, Order } from "./adapter.ts";
import { inputText, isObject, listAt, objectAt, textAt } from "./json_fields.ts";

/** Kinds of tool calls that need no person, by what the engine is permitted. */
const FREE: Record<Order["permissions"], ReadonlySet<string> | null> = {
  read: new Set(["read", "search", "think"]),
  edit: new Set(["read", "search", "think", "edit", "delete", "move"]),
  full: null,
};

/** Keys of a command and of what is said about it. */
const PLAIN = new Set(["command", "description", "timeout"]);
const CANCELLED = { outcome: "cancelled" };
const DECLINE = "Decline";
const OPTIONS_MAX = 10;
const OPTION_MAX_CHARACTERS = 50;
const TEXT_MAX_CHARACTERS = 4_000;
const WAIT_MS = 60_000;
const CANCEL_MAX_MS = 5_000;
const AGAIN_MS = 1_000;
/** Forms with more fields are declined. */
const FIELDS_MAX = 5;

/** The outcome of a `session/request_permission`: allowed by the engine's permissions, else what a person says. Never throws. */
export async function permitted(order: Order, params: Line, signal: AbortSignal): Promise<Line> {
  const call = objectAt(params, "toolCall");
  const options = listAt(params, "options");
  const allow = choice(options, "allow_once") ?? choice(options, "allow_always");
  const free = FREE[order.permissions];
  const input = shownInput(call.rawInput);
  if (allow !== null && (free === null || free.has(textAt(call, "kind")) || isOwn(order, call))) {
    return selected(allow);
  }
  const reject = choice(options, "reject_once") ?? choice(options, "reject_always");
  const refusal = reject === null ? CANCELLED : selected(reject);
  const names = options.map((option) => cut(textAt(option, "name"), OPTION_MAX_CHARACTERS));
  const refused = reject === null ? DECLINE : names[options.indexOf(reject)] || DECLINE;
  const title = textAt(call, "title") || textAt(call, "kind") || "a tool";
  const text = `May the agent do this? ${title}${
    input === "" || title.includes(input) ? "" : `\n\n${input}`
  }`;
  const answer = await ask(
    order,
    { text, options: offered(names, refused), default: refused },
    signal,
  );
  if (signal.aborted) return CANCELLED;
  const chosen = answer === null ? undefined : options[names.indexOf(answer)];
  return chosen === undefined ? refusal : selected(chosen);
}

/** The answer to an `elicitation/create`: each field of its form is a question. Never throws. */
export async function elicited(order: Order, params: Line, signal: AbortSignal): Promise<Line> {
  const fields = Object.entries(objectAt(objectAt(params, "requestedSchema"), "properties"));
  if (textAt(params, "mode") !== "form" || fields.length === 0 || fields.length > FIELDS_MAX) {
    return { action: "decline" };
  }
  const content: Line = {};
  for (const [name, schema] of fields) {
    const field = isObject(schema) ? schema : {};
    const choices = choicesOf(field);
    const label = textAt(field, "title") || textAt(field, "description") || name;
    const text = `${textAt(params, "message")}\n\n${label}`;
    const few = choices.length > 0 && choices.length < OPTIONS_MAX;
    const asked = few ? { text, options: [...choices, DECLINE], default: DECLINE } : { text };
    const answer = await ask(order, asked, signal);
    const value = answer === null || answer === DECLINE ? undefined : valueOf(field, answer);
    if (value === undefined) return { action: answer === null ? "cancel" : "decline" };
    content[name] = value;
  }
  return { action: "accept", content };
}

function choicesOf(field: Line): string[] {
  if (field.type === "boolean") return ["Yes", "No"];
  const values = Array.isArray(field.enum) ? field.enum.filter((value) => typeof value === "string") : [];
  const fit = values.every((value) =>
    value !== DECLINE && value !== "" && value.length <= OPTION_MAX_CHARACTERS
  );
  return fit ? unique(values) : [];
}

function valueOf(field: Line, answer: string): unknown {
  if (field.type === "boolean") return /^(y|yes|true|1)$/i.test(answer);
  if (field.type === "number" || field.type === "integer") {
    const number = Number(answer);
    return Number.isFinite(number) && (field.type === "number" || Number.isInteger(number))
      ? number
      : undefined;
  }
  if (Array.isArray(field.enum) && !field.enum.includes(answer)) return undefined;
  return answer;
}

function choice(options: readonly Line[], kind: string): Line | null {
  return options.find((option) => option.kind === kind) ?? null;
}

function selected(option: Line): Line {
  return { outcome: "selected", optionId: textAt(option, "optionId") };
}

// One call of svc ctl and nothing else: what it may do, its token decides.
function isOwn({ ctl }: Order, { kind, rawInput }: Line): boolean {
  if (kind !== "execute" || !isObject(rawInput) || !Object.keys(rawInput).every((key) => PLAIN.has(key))) {
    return false;
  }
  const input = inputText(rawInput);
  const [program = "", group = ""] = input.split(" ");
  return (program === "svc" || program === ctl) && group === "ctl" && !/[;&|<>$`()\\\n\r]/.test(input);
}

// Everything is shown: beside a harmless key there may be one that counts.
function shownInput(input: unknown): string {
  if (isObject(input) && Object.keys(input).some((key) => !PLAIN.has(key))) {
    return JSON.stringify(input, null, 1);
  }
  return inputText(input);
}

// What refuses is always among them.
function offered(names: readonly string[], refused: string): string[] {
  return unique([
    ...names.filter((name) => name !== "" && name !== refused).slice(0, OPTIONS_MAX - 1),
    refused,
  ]);
}

function unique(texts: readonly string[]): string[] {
  return [...new Set(texts)];
}

function cut(text: string, max: number): string {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length <= max ? line : `${line.slice(0, max - 1)}…`;
}

interface Asked {
  text: string;
  options?: string[];
  default?: string;
}

// How many questions of a turn are on their way: an agent prints them faster than any can be asked.
const open = new WeakMap<Order, number>();

/** A question of the run, and the answer of a person; null when there is none, or when more wait than a run may ask. It ends with the run. */
async function ask(order: Order, question: Asked, signal: AbortSignal): Promise<string | null> {
  const count = open.get(order) ?? 0;
  if (count >= RUN_QUESTIONS_MAX) return null;
  open.set(order, count + 1);
  try {
    return await askPerson(order.env, question, signal);
  } finally {
    open.set(order, (open.get(order) ?? 1) - 1);
  }
}

async function askPerson(env: Order["env"], question: Asked, signal: AbortSignal): Promise<string | null> {
  const text = question.text.slice(0, TEXT_MAX_CHARACTERS).toWellFormed();
  const key = crypto.randomUUID();
  let id = "";
  try {
    const body = { message_id: env.SVC_MESSAGE_ID, ...question, text };
    const asked = await insist(env, { method: "POST", path: "/api/questions", body, key }, signal);
    id = textAt(asked, "id");
    while (true) {
      const path = `/api/questions/${id}/wait?timeout_ms=${WAIT_MS}`;
      const now = await insist(env, { method: "GET", path }, signal);
      if (now.status !== "open") return now.status === "answered" ? textAt(now, "answer") : null;
    }
  } catch {
    // Nobody can be asked, or the run ends: that is no permission, and an answer would come too late.
    const cancel = { method: "POST", path: `/api/questions/${id}/cancel`, body: {} };
    if (id !== "") void insist(env, cancel, AbortSignal.timeout(CANCEL_MAX_MS)).catch(() => {});
    return null;
  }
}

/** A request to the service with the run's own token. */
interface OwnRequest {
  method: string;
  path: string;
  body?: unknown;
  /** With it the request may be repeated. */
  key?: string;
}

// The service may be stopped and started meanwhile, or out of reach for a while: the agent waits.
async function insist(env: Order["env"], request: OwnRequest, signal: AbortSignal): Promise<Line> {
  while (true) {
    const response = await send(env, request, signal).catch(() => null);
    signal.throwIfAborted();
    if (response !== null && response.status < 500 && response.status !== 429) {
      const answer: unknown = await response.json();
      if (response.ok && isObject(answer)) return answer;
      throw new Error(`${request.path} answered ${response.status}`);
    }
    await response?.body?.cancel();
    await pause(AGAIN_MS, undefined, { signal });
  }
}

function send(
  env: Order["env"],
  { method, path, body, key }: OwnRequest,
  signal: AbortSignal,
): Promise<Response> {
  return fetch(`${env.SVC_URL}${path}`, {
    method,
    headers: {
      authorization: `Bearer ${env.SVC_TOKEN}`,
      "content-type": "application/json",
      ...(key === undefined ? {} : { "idempotency-key": key }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    signal: AbortSignal.any([signal, AbortSignal.timeout(WAIT_MS + AGAIN_MS * 10)]),
  });
}
