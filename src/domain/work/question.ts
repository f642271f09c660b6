import { z } from "zod";
import {
  content,
  CONTENT_MAX_BYTES,
  id,
  line,
  listOf,
  refFilter,
  sessionKeysFilter,
  time,
  truncated,
  whole,
} from "../call/field.ts";
import { LOCAL_PLATFORM, messageId } from "../call/message_id.ts";
import { pageQuery } from "../call/page.ts";
import { QUESTION_STATUSES } from "../call/vocabulary.ts";

/** How long a question waits for its answer (contract 12). */
const QUESTION_TIMEOUT_MIN_MS = 1_000;
const QUESTION_TIMEOUT_DEFAULT_MS = 86_400_000;
const QUESTION_TIMEOUT_MAX_MS = 30 * 86_400_000;

/** Limits of a question. */
const QUESTION_TEXT_MAX_BYTES = 16 * 1024;
const QUESTION_OPTIONS_MAX = 10;
const OPTION_MAX_BYTES = 200;

/** Most questions of one run, and most open ones of one conversation. */
export const RUN_QUESTIONS_MAX = 20;
export const OPEN_QUESTIONS_MAX = 100;

/** A question of an agent to a person (contract 12). Absent references and texts are "". */
export const questionSchema = z.strictObject({
  id,
  session_key: z.string(),
  message_id: z.string(),
  task_id: z.string().meta({ description: "empty when a person asked" }),
  execution_id: z.string().meta({ description: "the latest run that asked" }),
  worker_id: z.string(),
  text: z.string(),
  options: z.array(z.string()),
  default: z.string().meta({ description: "what counts without an answer in time; empty for none" }),
  status: z.enum(QUESTION_STATUSES),
  answer: z.string(),
  answered_by: z.string().meta({ description: "who answered; `default` when the default counted" }),
  created_at: time,
  expires_at: time,
  answered_at: time.nullable(),
  seen_at: time.nullable().meta({
    description: "when the agent got the answer, in its run or as a new task",
  }),
  truncated,
}).meta({ id: "Question" });

export type Question = z.output<typeof questionSchema>;

/** Body of POST /api/questions. */
export const questionCreateSchema = z.strictObject({
  message_id: messageId.meta({ description: "the message that it is about; it names the conversation" }),
  text: content(QUESTION_TEXT_MAX_BYTES),
  options: z.array(line(OPTION_MAX_BYTES).overwrite((value) => value.trim())).max(QUESTION_OPTIONS_MAX)
    .refine((options) => new Set(options).size === options.length, { error: "must differ from each other" })
    .default([]),
  default: line(QUESTION_TEXT_MAX_BYTES).optional(),
  timeout_ms: z.int().min(QUESTION_TIMEOUT_MIN_MS).max(QUESTION_TIMEOUT_MAX_MS).default(
    QUESTION_TIMEOUT_DEFAULT_MS,
  ),
}).meta({
  id: "QuestionCreate",
  examples: [{
    message_id: "01a1fd23-4a4c-746f-99ac-8860e2641168",
    text: "Delete the old backups, too?",
    options: ["Yes", "No"],
    default: "No",
  }],
});

export type QuestionCreate = z.output<typeof questionCreateSchema>;

/** Body of POST /api/questions/:id/answer. */
export const questionAnswerSchema = z.strictObject({ answer: content(CONTENT_MAX_BYTES) }).meta({
  id: "QuestionAnswer",
  examples: [{ answer: "Yes" }],
});

/** Query of GET /api/questions. */
export const questionListQuery = {
  ref: refFilter.optional(),
  status: listOf(z.enum(QUESTION_STATUSES)).optional(),
  session_key: sessionKeysFilter.optional(),
  worker_id: listOf(z.string().min(1)).optional(),
  ...pageQuery(),
};

export type QuestionFilter = z.output<z.ZodObject<typeof questionListQuery>>;

/** Query of GET /api/questions/:id/wait. */
export const questionWaitQuery = {
  timeout_ms: whole(0, 600_000).default(30_000).meta({
    type: "integer",
    minimum: 0,
    maximum: 600_000,
    default: 30_000,
  }),
};

type Asked = Pick<Question, "options">;

/** The option that a text names, by its words or its number; null for none (contract 12). */
export function optionOf({ options }: Asked, given: string): string | null {
  const text = given.trim();
  if (options.includes(text)) return text;
  return /^[1-9]\d?$/.test(text) ? options[Number(text) - 1] ?? null : null;
}

/** An answer as it is stored: an option's text, or the words as they were said. */
export function answerOf(question: Asked, given: string): string {
  return optionOf(question, given) ?? given.trim();
}

/** The question as its conversation reads it, with its options by number and what happens without an answer. */
export function questionMessage({ text, options, default: fallback, expires_at }: Question): string {
  const numbered = options.map((option, index) => `${index + 1}. ${option}`);
  const until = new Date(expires_at).toISOString().slice(0, 16).replace("T", " ");
  return [
    text.trim(),
    ...(numbered.length === 0 ? [] : ["", ...numbered]),
    ...(fallback === "" ? [] : ["", `Without an answer by ${until} UTC: ${fallback}`]),
  ].join("\n");
}

/** What the task that brings an answer says, as texts around question and answer: both are known only in the batch that makes it. */
export const ANSWER_WORDS = {
  asked: "You asked a question and ended your turn. This is the answer; go on from there.\n\nYou asked: ",
  answered: "\n\nThe answer: ",
  byDefault: " (nobody answered in time: this is your default)",
};

/** In a direct chat a plain message so soon after a free question is its answer (contract 12). */
const PLAIN_ANSWER_MAX_MS = 600_000;

/** What a message of a chat needs for an answer. */
interface Spoken {
  content: string;
  /** It has a file. */
  hasMedia: boolean;
  receivedAt: number;
  /** The question that it replies to, or "". */
  replyTo: string;
  /** The conversation is of two. */
  direct: boolean;
}

/** What a message is to the open questions of its conversation. */
export type Reading =
  | { is: "answer"; question: OpenQuestion; answer: string }
  | { is: "unclear"; words: string }
  | { is: "message" };

/** An open question as a message is compared with it. */
export type OpenQuestion = Pick<Question, "id" | "options" | "created_at" | "expires_at">;

const COMMAND = /^[/!]answer(?:\s+([\s\S]*))?$/;

/**
 * Whether a message of a person is an answer: a reply to a question, `/answer`, exactly an option of the only open question, or the
 * first plain message soon after the only open one, where that is free (contract 12).
 */
export function readAnswer(open: readonly OpenQuestion[], said: Spoken): Reading {
  const { content, hasMedia, receivedAt, replyTo, direct } = said;
  const words = content.trim();
  const could = open.filter((one) => one.created_at <= receivedAt && one.expires_at > receivedAt);
  const repliedTo = could.find((one) => one.id === replyTo);
  const command = COMMAND.exec(words);
  const answer = command === null ? words : (command[1] ?? "").trim();
  if (repliedTo !== undefined && answer !== "" && !hasMedia) return answered(repliedTo, answer);
  const [only] = could;
  if (command !== null) {
    if (could.length === 0 || only === undefined) {
      return { is: "unclear", words: "There is no open question here." };
    }
    if (answer === "") return { is: "unclear", words: "Write your answer behind it: /answer <text>" };
    return could.length === 1 ? answered(only, answer) : {
      is: "unclear",
      words: `There are ${could.length} open questions here: reply to the one that you mean.`,
    };
  }
  if (only === undefined || could.length > 1 || hasMedia || words === "") return { is: "message" };
  if (optionOf(only, words) !== null) return answered(only, words);
  const soon = receivedAt - only.created_at <= PLAIN_ANSWER_MAX_MS;
  return direct && soon && only.options.length === 0 ? answered(only, words) : { is: "message" };
}

function answered(question: OpenQuestion, words: string): Reading {
  return { is: "answer", question, answer: answerOf(question, words) };
}

/** Who said something, as far as an answer depends on it. */
interface Speaker {
  platform: string;
  sender: string;
  /** A program sent it: SQL's 0 or 1. */
  is_data: number;
}

/**
 * Who answers with this, as `answered_by` names people; null for whoever may not: only what a person writes is an answer, and never
 * what a run posts in a chat or a program sends to a webhook (contract 12, reliability QST-2).
 */
export function answererOf({ platform, sender, is_data }: Speaker): string | null {
  if (is_data !== 0) return null;
  if (platform !== LOCAL_PLATFORM) return `${platform}:${sender}`;
  return /^(user|token):/.test(sender) ? sender : null;
}
