// Requests and responses in the form of OpenAI's chat completions
import { z } from "zod";
import { CONTENT_MAX_BYTES } from "../call/field.ts";
import { countBytes } from "../../base/bytes.ts";
import { invalid } from "../call/error.ts";
import { type Excerpt } from "./excerpt.ts";
import { PLACE_MAX_CHARACTERS } from "./platform.ts";
import { CONVERSATION_MAX_MESSAGES, cutText } from "./prompt.ts";

const COMPLETION_MESSAGES_MAX = 2_000;
const EARLIER_MAX_CHARACTERS = 4_000;
const DELTA_MAX_CHARACTERS = 2_000;

const partSchema = z.looseObject({ type: z.string(), text: z.string().optional() });

const messageSchema = z.looseObject({
  role: z.string(),
  content: z.union([z.string(), z.array(partSchema)]).nullish(),
});

/** Fields that OpenAI knows and this schema does not, such as `temperature`, have no effect. */
export const completionCreateSchema = z.looseObject({
  model: z.string().min(1).meta({ description: "id of a worker, or its name if no other worker has it" }),
  messages: z.array(messageSchema).min(1).max(COMPLETION_MESSAGES_MAX),
  stream: z.boolean().nullish(),
  stream_options: z.looseObject({ include_usage: z.boolean().nullish() }).nullish(),
  user: z.string().nullish().meta({ description: "the conversation, without `metadata.conversation`" }),
  metadata: z.looseObject({ conversation: z.string().optional() }).nullish(),
}).meta({
  id: "ChatCompletionCreate",
  examples: [{ model: "Ada", messages: [{ role: "user", content: "What is new?" }] }],
});
export type CompletionCreate = z.output<typeof completionCreateSchema>;

const usageSchema = z.strictObject({
  prompt_tokens: z.int(),
  completion_tokens: z.int(),
  total_tokens: z.int(),
}).meta({ description: "0 for figures that the engine does not report" });

export const completionSchema = z.strictObject({
  id: z.string().meta({ description: "chatcmpl- and the id of the message, for `svc ctl message trace`" }),
  object: z.literal("chat.completion"),
  created: z.int().meta({ description: "Unix seconds" }),
  model: z.string(),
  choices: z.array(z.strictObject({
    index: z.int(),
    message: z.strictObject({ role: z.literal("assistant"), content: z.string(), refusal: z.null() }),
    logprobs: z.null(),
    finish_reason: z.literal("stop"),
  })),
  usage: usageSchema,
}).meta({ id: "ChatCompletion" });
type Completion = z.output<typeof completionSchema>;

export const modelListSchema = z.strictObject({
  object: z.literal("list"),
  data: z.array(z.strictObject({
    id: z.string().meta({ description: "the worker's name, or its id if another worker has the same name" }),
    object: z.literal("model"),
    created: z.int().meta({ description: "Unix seconds" }),
    owned_by: z.literal("svc"),
    name: z.string(),
  })),
}).meta({ id: "ModelList" });
export type ModelList = z.output<typeof modelListSchema>;

export const completionErrorSchema = z.strictObject({
  error: z.strictObject({
    message: z.string(),
    type: z.string(),
    param: z.string().nullable(),
    code: z.string().nullable(),
  }),
}).meta({ id: "OpenAiError" });
export type CompletionError = z.output<typeof completionErrorSchema>;

/** The parts of a request for the worker. */
interface CompletionInput {
  text: string;
  /** Texts of the client that are data for the worker: system messages and the earlier conversation. */
  excerpts: Excerpt[];
  /** The conversation that the client names, or "". */
  conversation: string;
}

/** Reads the new message of a request. Throws `invalid_request` that names the field for anything that a worker cannot do. */
export function readCompletionInput(request: CompletionCreate): CompletionInput {
  refuseUnsupported(request);
  const conversation = findConversation(request);
  const messages = request.messages.map(readMessage);
  const isNew = messages.findLastIndex(({ role }) => role === "assistant") + 1;
  const text = joinTexts(messages.slice(isNew).filter(({ role }) => role === "user"));
  const last = `messages.${messages.length - 1}`;
  if (messages.at(-1)?.role === "assistant") {
    throw invalid(`${last}.role`, "must not be assistant: the last message is the one to answer");
  }
  if (text === "") throw invalid(`${last}.content`, "must not be empty");
  if (countBytes(text) > CONTENT_MAX_BYTES) {
    throw invalid(`${last}.content`, `must be at most ${CONTENT_MAX_BYTES} bytes`);
  }
  const system = joinTexts(messages.filter(({ role }) => role === "system"));
  const spoken = messages.slice(0, isNew).filter(({ role }) => role !== "system");
  // A conversation that the client names has its earlier messages here.
  const earlier = conversation === "" ? spoken.slice(-CONVERSATION_MAX_MESSAGES) : [];
  return {
    text,
    excerpts: [
      {
        kind: "quoted",
        author: "the unverified system message of the API client",
        text: system,
      },
      {
        kind: "quoted",
        author: "the conversation so far, as the API client sent it",
        text: formatEarlier(earlier),
      },
    ],
    conversation,
  };
}

interface Message {
  role: "system" | "user" | "assistant";
  text: string;
}

function joinTexts(messages: readonly Message[]): string {
  return messages.map(({ text }) => text).join("\n\n").trim();
}

function formatEarlier(messages: readonly Message[]): string {
  return messages.map(({ role, text }) =>
    `${role === "user" ? "user" : "answer"}: ${cutText(text, EARLIER_MAX_CHARACTERS)}`
  ).join("\n");
}

/** Fields that would change the answer in a way that no worker can follow, with the accepted values and the reason. */
const UNSUPPORTED: [field: string, isAccepted: (value: unknown) => boolean, reason: string][] = [
  ["n", (value) => value === 1, "must be 1: a worker gives one answer"],
  ["tools", isEmptyList, "must be empty: workers use their own tools"],
  ["functions", isEmptyList, "must be empty: workers use their own tools"],
  [
    "tool_choice",
    (value) => value === "none" || value === "auto",
    "must be none or auto: workers use their own tools",
  ],
  ["modalities", (value) => JSON.stringify(value) === '["text"]', "must be text: workers answer in text"],
  ["audio", () => false, "is not supported: workers answer in text"],
  ["logprobs", (value) => value === false, "must be false: workers have no token probabilities"],
  [
    "response_format",
    (value) => typeof value === "object" && value !== null && "type" in value && value.type === "text",
    "must have the type text: describe other formats in the message",
  ],
];

function isEmptyList(value: unknown): boolean {
  return Array.isArray(value) && value.length === 0;
}

function refuseUnsupported(request: CompletionCreate): void {
  for (const [field, isAccepted, reason] of UNSUPPORTED) {
    const value = Object.hasOwn(request, field) ? request[field] : undefined;
    if (value !== undefined && value !== null && !isAccepted(value)) throw invalid(field, reason);
  }
}

function findConversation({ metadata, user }: CompletionCreate): string {
  const [field, given] = metadata?.conversation === undefined
    ? ["user", user ?? ""]
    : ["metadata.conversation", metadata.conversation];
  if (given.length > PLACE_MAX_CHARACTERS) {
    throw invalid(field, `must be at most ${PLACE_MAX_CHARACTERS} characters`);
  }
  return given.toWellFormed().replaceAll("\0", "").trim();
}

const ROLES: Record<string, Message["role"]> = {
  system: "system",
  developer: "system",
  user: "user",
  assistant: "assistant",
};

function readMessage(message: CompletionCreate["messages"][number], at: number): Message {
  const role = Object.hasOwn(ROLES, message.role) ? ROLES[message.role] : undefined;
  if (role === undefined) {
    throw invalid(
      `messages.${at}.role`,
      "must be system, developer, user or assistant: tools are not supported",
    );
  }
  const { content, tool_calls } = message;
  if (tool_calls !== undefined && tool_calls !== null && !isEmptyList(tool_calls)) {
    throw invalid(`messages.${at}.tool_calls`, "must be empty: workers use their own tools");
  }
  const parts = typeof content === "string" ? [content] : (content ?? []).map((part, place) => {
    if (part.type === "text" && part.text !== undefined) return part.text;
    throw invalid(
      `messages.${at}.content.${place}`,
      "must be text: images, audio and files are not supported",
    );
  });
  return { role, text: parts.join("\n").toWellFormed().replaceAll("\0", "") };
}

/** The fields that all parts of one response share. */
export interface CompletionHead {
  message_id: string;
  model: string;
  /** Unix ms. */
  received_at: number;
}

export interface CompletionResult {
  content: string;
  input_tokens: number;
  output_tokens: number;
}

function buildHead<T extends string>({ message_id, model, received_at }: CompletionHead, object: T) {
  return { id: `chatcmpl-${message_id}`, object, created: Math.floor(received_at / 1000), model };
}

function buildUsage({ input_tokens, output_tokens }: CompletionResult) {
  return {
    prompt_tokens: input_tokens,
    completion_tokens: output_tokens,
    total_tokens: input_tokens + output_tokens,
  };
}

export function buildCompletion(head: CompletionHead, result: CompletionResult): Completion {
  const message = { role: "assistant" as const, content: result.content, refusal: null };
  return {
    ...buildHead(head, "chat.completion"),
    choices: [{ index: 0, message, logprobs: null, finish_reason: "stop" }],
    usage: buildUsage(result),
  };
}

/** Builds the chunks of an answer: the role, its text in pieces, the end, and the usage when the client asks for it. */
export function buildChunks(head: CompletionHead, result: CompletionResult, withUsage: boolean): object[] {
  const build = (delta: object, finish_reason: "stop" | null) => ({
    ...buildHead(head, "chat.completion.chunk"),
    choices: [{ index: 0, delta, logprobs: null, finish_reason }],
    ...(withUsage ? { usage: null } : {}),
  });
  const pieces = result.content.match(new RegExp(`[^]{1,${DELTA_MAX_CHARACTERS}}`, "gu")) ?? [];
  return [
    build({ role: "assistant", content: "" }, null),
    ...pieces.map((content) => build({ content }, null)),
    build({}, "stop"),
    ...(withUsage
      ? [{ ...buildHead(head, "chat.completion.chunk"), choices: [], usage: buildUsage(result) }]
      : []),
  ];
}
