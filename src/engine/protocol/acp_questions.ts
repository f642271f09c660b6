// Asks a person about the permission requests and forms of an agent. The default is to refuse (contract 12, contract 17).
import { RUN_QUESTIONS_MAX } from "../../domain/work/question.ts";
import type { Line, Order } from "./adapter.ts";
import { isOwnCommand, requestApproval } from "./approvals.ts";
import { formatInput, getList, getObject, getText, isObject } from "./json_fields.ts";
import { sendUntilAnswered, WAIT_MS } from "./own_request.ts";

const EDITS: ReadonlySet<string> = new Set(["read", "search", "think", "edit", "delete", "move"]);

/** The kinds of tool calls that need no approval, by the engine's permissions. */
const FREE: Record<Order["permissions"], ReadonlySet<string> | null> = {
  read: new Set(["read", "search", "think"]),
  edit: EDITS,
  ask: EDITS,
  full: null,
};

/** Keys of a plain command input. */
const PLAIN = new Set(["command", "description", "timeout"]);
const CANCELLED = { outcome: "cancelled" };
const DECLINE = "Decline";
const OPTIONS_MAX = 10;
const OPTION_MAX_CHARACTERS = 50;
const TEXT_MAX_CHARACTERS = 4_000;
const CANCEL_MAX_MS = 5_000;
/** Forms with more fields are declined. */
const FIELDS_MAX = 5;

/**
 * Answers a `session/request_permission` by the engine's permissions. If they don't decide, asks a person. `known` has the fields of its
 * earlier messages about the call, for the person only. Never throws.
 */
export async function answerPermission(
  order: Order,
  params: Line,
  signal: AbortSignal,
  known: Line = {},
): Promise<Line> {
  const call = getObject(params, "toolCall");
  const options = getList(params, "options");
  const allow = findOption(options, "allow_once") ?? findOption(options, "allow_always");
  const free = FREE[order.permissions];
  const input = formatToolInput(call.rawInput);
  if (allow !== null && (free === null || free.has(getText(call, "kind")) || isOwn(order, call))) {
    return selectOption(allow);
  }
  const reject = findOption(options, "reject_once") ?? findOption(options, "reject_always");
  const refusal = reject === null ? CANCELLED : selectOption(reject);
  if (order.permissions === "ask") return await answerOnce(order, { ...known, ...call }, options, signal);
  const names = options.map((option) => shorten(getText(option, "name"), OPTION_MAX_CHARACTERS));
  const refused = reject === null ? DECLINE : names[options.indexOf(reject)] || DECLINE;
  const title = getText(call, "title") || getText(call, "kind") || "a tool";
  const text = `May the agent do this? ${title}${
    input === "" || title.includes(input) ? "" : `\n\n${input}`
  }`;
  const answer = await ask(
    order,
    { text, options: buildOptions(names, refused), default: refused },
    signal,
  );
  if (signal.aborted) return CANCELLED;
  const chosen = answer === null ? undefined : options[names.indexOf(answer)];
  return chosen === undefined ? refusal : selectOption(chosen);
}

// After "always" the agent would not ask again, so the service remembers instead.
async function answerOnce(
  order: Order,
  call: Line,
  options: readonly Line[],
  signal: AbortSignal,
): Promise<Line> {
  const allow = findOption(options, "allow_once");
  const reject = findOption(options, "reject_once");
  const refusal = reject === null ? CANCELLED : selectOption(reject);
  if (allow === null) return refusal;
  // A person cannot decide on a call without a description, and all such calls look the same.
  if (!isDescribed(call)) return refusal;
  const { title, kind, rawInput, content, locations } = call;
  const tool = getText(call, "title") || getText(call, "kind") || "a tool";
  // Gemini CLI has the command in the title, and `tool` has the beginning of the title.
  const input = { title, kind, rawInput, content, locations };
  const { allowed } = await requestApproval(order, { tool, input }, signal);
  if (signal.aborted) return CANCELLED;
  return allowed ? selectOption(allow) : refusal;
}

// Whether it has more than a name. An agent may announce a call with an empty input.
function isDescribed({ rawInput, content, locations, ...call }: Line): boolean {
  const isFull = (value: unknown) =>
    typeof value === "object" && value !== null ? Object.keys(value).length > 0 : Boolean(value);
  return getText(call, "title") !== "" || [rawInput, content, locations].some(isFull);
}

/** Answers an `elicitation/create` by one question for each field of its form. Never throws. */
export async function answerForm(order: Order, params: Line, signal: AbortSignal): Promise<Line> {
  const fields = Object.entries(getObject(getObject(params, "requestedSchema"), "properties"));
  if (getText(params, "mode") !== "form" || fields.length === 0 || fields.length > FIELDS_MAX) {
    return { action: "decline" };
  }
  const content: Line = {};
  for (const [name, schema] of fields) {
    const field = isObject(schema) ? schema : {};
    const choices = listChoices(field);
    const label = getText(field, "title") || getText(field, "description") || name;
    const text = `${getText(params, "message")}\n\n${label}`;
    const few = choices.length > 0 && choices.length < OPTIONS_MAX;
    const question = few ? { text, options: [...choices, DECLINE], default: DECLINE } : { text };
    const answer = await ask(order, question, signal);
    const value = answer === null || answer === DECLINE ? undefined : parseAnswer(field, answer);
    if (value === undefined) return { action: answer === null ? "cancel" : "decline" };
    content[name] = value;
  }
  return { action: "accept", content };
}

function listChoices(field: Line): string[] {
  if (field.type === "boolean") return ["Yes", "No"];
  const values = Array.isArray(field.enum) ? field.enum.filter((value) => typeof value === "string") : [];
  const fit = values.every((value) =>
    value !== DECLINE && value !== "" && value.length <= OPTION_MAX_CHARACTERS
  );
  return fit ? [...new Set(values)] : [];
}

function parseAnswer(field: Line, answer: string): unknown {
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

function findOption(options: readonly Line[], kind: string): Line | null {
  return options.find((option) => option.kind === kind) ?? null;
}

function selectOption(option: Line): Line {
  return { outcome: "selected", optionId: getText(option, "optionId") };
}

function isOwn({ ctl }: Order, { kind, rawInput }: Line): boolean {
  if (kind !== "execute" || !isObject(rawInput) || !Object.keys(rawInput).every((key) => PLAIN.has(key))) {
    return false;
  }
  return isOwnCommand(ctl, formatInput(rawInput));
}

// Shows all keys of the input, because an unknown key can change the effect of the call.
function formatToolInput(input: unknown): string {
  if (isObject(input) && Object.keys(input).some((key) => !PLAIN.has(key))) {
    return JSON.stringify(input, null, 1);
  }
  return formatInput(input);
}

// The refusal is always one of the options.
function buildOptions(names: readonly string[], refused: string): string[] {
  const others = names.filter((name) => name !== "" && name !== refused).slice(0, OPTIONS_MAX - 1);
  return [...new Set([...others, refused])];
}

function shorten(text: string, max: number): string {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length <= max ? line : `${line.slice(0, max - 1)}…`;
}

interface Question {
  text: string;
  options?: string[];
  default?: string;
}

// Number of open questions per turn. An agent can send requests faster than the service takes questions.
const open = new WeakMap<Order, number>();

/** Asks a question on behalf of the run. Returns null without an answer, or when the run has too many open questions. */
async function ask(order: Order, question: Question, signal: AbortSignal): Promise<string | null> {
  const count = open.get(order) ?? 0;
  if (count >= RUN_QUESTIONS_MAX) return null;
  open.set(order, count + 1);
  try {
    return await askPerson(order.env, question, signal);
  } finally {
    open.set(order, (open.get(order) ?? 1) - 1);
  }
}

async function askPerson(env: Order["env"], question: Question, signal: AbortSignal): Promise<string | null> {
  const text = question.text.slice(0, TEXT_MAX_CHARACTERS).toWellFormed();
  const key = crypto.randomUUID();
  let id = "";
  try {
    const body = { message_id: env.SVC_MESSAGE_ID, ...question, text };
    const created = await sendUntilAnswered(
      env,
      { method: "POST", path: "/api/questions", body, key },
      signal,
    );
    id = getText(created, "id");
    while (true) {
      const path = `/api/questions/${id}/wait?timeout_ms=${WAIT_MS}`;
      const now = await sendUntilAnswered(env, { method: "GET", path }, signal);
      if (now.status !== "open") return now.status === "answered" ? getText(now, "answer") : null;
    }
  } catch {
    // The question failed, or the run ends. In both cases permission is denied, and a later answer would be too late.
    const cancel = { method: "POST", path: `/api/questions/${id}/cancel`, body: {} };
    if (id !== "") void sendUntilAnswered(env, cancel, AbortSignal.timeout(CANCEL_MAX_MS)).catch(() => {});
    return null;
  }
}
