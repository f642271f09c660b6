import { z } from "zod";
import {
  content,
  CONTENT_MAX_BYTES,
  id,
  line,
  parseIntegerOr,
  parseList,
  refFilter,
  sessionKeysFilter,
  time,
  truncated,
} from "../call/field.ts";
import { LOCAL_PLATFORM, messageId } from "../call/message_id.ts";
import { buildPageQuery } from "../call/page.ts";
import { readCommand } from "../call/typed_command.ts";
import { QUESTION_STATUSES } from "../call/vocabulary.ts";

const QUESTION_TIMEOUT_MIN_MS = 1_000;
const QUESTION_TIMEOUT_DEFAULT_MS = 86_400_000;
const QUESTION_TIMEOUT_MAX_MS = 30 * 86_400_000;

const QUESTION_TEXT_MAX_BYTES = 16 * 1024;
const QUESTION_OPTIONS_MAX = 10;
const OPTION_MAX_BYTES = 200;

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
  tool: z.string().meta({ description: "the tool of a call that needs approval; else empty" }),
  arguments: z.string().meta({ description: "the arguments of that call, masked and escaped" }),
  options: z.array(z.string()),
  default: z.string().meta({ description: "the answer when the question expires; empty for none" }),
  status: z.enum(QUESTION_STATUSES),
  answer: z.string(),
  answered_by: z.string().meta({ description: "who answered; `default` for the default" }),
  created_at: time,
  expires_at: time,
  answered_at: time.nullable(),
  seen_at: time.nullable().meta({
    description: "when the agent got the answer, in its run or as a new task",
  }),
  truncated,
}).meta({ id: "Question" });
export type Question = z.output<typeof questionSchema>;

export const questionCreateSchema = z.strictObject({
  message_id: messageId.meta({
    description: "the message that the question is about; its conversation gets the question",
  }),
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

export const questionAnswerSchema = z.strictObject({ answer: content(CONTENT_MAX_BYTES) }).meta({
  id: "QuestionAnswer",
  examples: [{ answer: "Yes" }],
});

export const questionListQuery = {
  ref: refFilter.optional(),
  status: parseList(z.enum(QUESTION_STATUSES)).optional(),
  session_key: sessionKeysFilter.optional(),
  worker_id: parseList(z.string().min(1)).optional(),
  ...buildPageQuery(),
};
export type QuestionFilter = z.output<z.ZodObject<typeof questionListQuery>>;

export const questionWaitQuery = { timeout_ms: parseIntegerOr(30_000, [0, 600_000]) };

/** Why an answer to a tool call counts nothing, or null. Only one of its options is an answer (contract 23). */
export function findAnswerFault(
  { tool, options }: Pick<Question, "tool" | "options">,
  answer: string,
): string | null {
  return tool === "" || options.includes(answer) ? null : `choose one of: ${options.join(", ")}`;
}

type QuestionOptions = Pick<Question, "options">;

/** Finds the option that a text names by its words or its number, or null (contract 12). */
export function findOption({ options }: QuestionOptions, given: string): string | null {
  const text = given.trim();
  if (options.includes(text)) return text;
  return /^[1-9]\d?$/.test(text) ? options[Number(text) - 1] ?? null : null;
}

/** Returns the stored form of an answer: an option's text, or the given text. */
export function normalizeAnswer(question: QuestionOptions, given: string): string {
  return findOption(question, given) ?? given.trim();
}

/** Formats a question for its conversation, with numbered options and the default. */
export function formatQuestion({ text, options, default: fallback, expires_at }: Question): string {
  const numbered = options.map((option, index) => `${index + 1}. ${option}`);
  const until = new Date(expires_at).toISOString().slice(0, 16).replace("T", " ");
  return [
    text.trim(),
    ...(numbered.length === 0 ? [] : ["", ...numbered]),
    ...(fallback === "" ? [] : ["", `Without an answer by ${until} UTC: ${fallback}`]),
  ].join("\n");
}

/** Texts around the question and its answer in the instruction of the task that brings the answer. */
export const ANSWER_WORDS = {
  asked: "You asked a question and ended your turn. This is the answer; continue from there.\n\nYou asked: ",
  answered: "\n\nThe answer: ",
  byDefault: " (no answer in time; this is your default)",
};

/** In a direct chat, the first plain message within this time answers a question without options (contract 12). */
const PLAIN_ANSWER_MAX_MS = 600_000;

interface ChatInput {
  content: string;
  hasMedia: boolean;
  receivedAt: number;
  /** The question that the message replies to, or "". */
  replyTo: string;
  /** Whether the chat has only two members. */
  direct: boolean;
}

export type MessageMeaning =
  | { is: "answer"; question: OpenQuestion; answer: string }
  | { is: "unclear"; words: string }
  | { is: "message" };

export type OpenQuestion = Pick<Question, "id" | "tool" | "options" | "created_at" | "expires_at">;

/**
 * Classifies a person's message against the open questions: a reply to a question, `/answer`, exactly an option of the only
 * open question, or the first plain message soon after the only open one without options (contract 12).
 */
export function readAnswer(open: readonly OpenQuestion[], said: ChatInput): MessageMeaning {
  const { content, hasMedia, receivedAt, replyTo, direct } = said;
  const words = content.trim();
  const could = open.filter((one) => one.created_at <= receivedAt && one.expires_at > receivedAt);
  const repliedTo = could.find((one) => one.id === replyTo);
  const typed = readCommand(words);
  const command = typed?.name === "answer" ? typed : null;
  const answer = command === null ? words : command.rest;
  if (repliedTo !== undefined && answer !== "" && !hasMedia) return readWords(repliedTo, answer);
  const [only] = could;
  if (command !== null) {
    if (could.length === 0 || only === undefined) {
      return { is: "unclear", words: "There is no open question here." };
    }
    if (answer === "") return { is: "unclear", words: "The answer is missing. Write: /answer <text>" };
    return could.length === 1 ? readWords(only, answer) : {
      is: "unclear",
      words: `There are ${could.length} open questions here. Reply to the one that you mean.`,
    };
  }
  if (only === undefined || could.length > 1 || hasMedia || words === "") return { is: "message" };
  if (findOption(only, words) !== null) return buildAnswer(only, words);
  const soon = receivedAt - only.created_at <= PLAIN_ANSWER_MAX_MS;
  return direct && soon && only.options.length === 0 ? buildAnswer(only, words) : { is: "message" };
}

function readWords(question: OpenQuestion, words: string): MessageMeaning {
  const meaning = buildAnswer(question, words);
  const fault = meaning.is === "answer" ? findAnswerFault(question, meaning.answer) : null;
  return fault === null ? meaning : {
    is: "unclear",
    words: `This needs an answer to a tool call: ${fault}. A user can also answer it in the console.`,
  };
}

function buildAnswer(question: OpenQuestion, words: string): MessageMeaning {
  return { is: "answer", question, answer: normalizeAnswer(question, words) };
}

interface MessageSender {
  platform: string;
  sender: string;
  /** 1 for a program's message, as SQL has it. */
  is_data: number;
}

/**
 * Returns the `answered_by` of a message, or null when its sender may not answer. Only a person's message is an answer, never
 * a run's post in a chat or a program's message to a webhook (contract 12, reliability QST-2).
 */
export function findAnswerer({ platform, sender, is_data }: MessageSender): string | null {
  if (is_data !== 0) return null;
  if (platform !== LOCAL_PLATFORM) return `${platform}:${sender}`;
  return /^(user|token):/.test(sender) ? sender : null;
}
