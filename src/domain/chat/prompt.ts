import { countBytes, cutToBytes } from "../../base/bytes.ts";
import { quoteShellWord } from "../../base/shell.ts";
import { hasConversation, type Media } from "./message.ts";
import { formatResults, type ParentResult } from "../work/task_parent.ts";
import type { ChatMessage } from "./chat.ts";

/** The context of a run, without the instruction. */
export interface RunContext {
  worker: {
    id: string;
    name: string;
    description: string;
    memory: string;
    constraints: string;
    work_dir: string;
  };
  task: { id: string; type: string; attempt: number };
  message: { id: string; session_key: string; attachments: Media[] };
  /** Newest entry first. */
  memory: { global: Record<string, string>; session: Record<string, string> };
  /** Number of older memory entries that the prompt omits. */
  memory_left?: { global: number; session: number };
  /** The recent conversation, oldest first. */
  conversation: ConversationEntry[];
  /** The ended tasks that this one waited for. */
  parents?: ParentResult[];
}

export type ConversationEntry = Pick<ChatMessage, "role" | "content" | "ts">;

export const CONVERSATION_MAX_MESSAGES = 20;
const SAID_MAX_CHARACTERS = 4_000;
const ASKED_MAX_CHARACTERS = 4_000;
const MEMORY_VALUE_MAX_CHARACTERS = 4_000;
const MEMORY_MAX_CHARACTERS = 40_000;

/** Formats the context as JSON for the file SVC_CONTEXT_FILE of a `command` engine (contract 7.5). */
export function formatContextFile(context: RunContext, instruction: string): string {
  return JSON.stringify({ ...context, task: { ...context.task, instruction } }, null, 2) + "\n";
}

/** Parts of a prompt beyond context and instruction. */
interface PromptExtras {
  /** The conversation before the message, for an engine session that restarts in the middle of it. */
  said: readonly ConversationEntry[];
  /** The task whose question this task answers, for an engine session that does not know it. "" if there is none. */
  asked?: string;
  /** An earlier run of the task was interrupted. */
  interrupted: boolean;
  /** Absolute path of `svc`. */
  ctl: string;
  /** Limit of the prompt in bytes (limits.max_prompt_bytes). */
  maxBytes?: number;
}

/**
 * Builds the prompt of an agent (contract 4.7): identity, constraints, memory, use of the service, message, and the
 * instruction last.
 */
export function buildWorkerPrompt(context: RunContext, instruction: string, extras: PromptExtras): string {
  const { worker, memory, message, memory_left: left, parents = [] } = context;
  const { said, asked = "", interrupted, ctl, maxBytes = PROMPT_MAX_BYTES } = extras;
  const ofAll = formatEntries(memory.global, "global", left?.global ?? 0);
  const ofThis = formatEntries(memory.session, message.session_key, left?.session ?? 0);
  return fitPrompt([
    { text: formatSection("Who you are", formatIdentity(context)) },
    { text: formatSection("What you always keep to", worker.memory), give: 4 },
    { text: formatSection("What you must not do", worker.constraints), give: 5 },
    { text: formatSection("Memory of all workers (scope global)", ofAll), give: 2 },
    { text: formatSection(`Memory of this conversation (scope ${message.session_key})`, ofThis), give: 3 },
    { text: formatSection("The service", formatService(message, ctl)) },
    { text: formatConversation(said, "user", SAID_MAX_CHARACTERS), give: 1 },
    { text: formatSection("The message", formatMessageHead(message)) },
    { text: formatSection("The task in which you asked", cutText(asked, ASKED_MAX_CHARACTERS)) },
    { text: interrupted ? formatSection("Interrupted", INTERRUPTED) : "" },
    { text: formatSection("Results of earlier tasks", formatResults(parents)), give: 6 },
    { text: `# Your task\n\n${instruction}\n` },
  ], maxBytes);
}

/** Formats a part of a prompt with its title. Returns "" for an empty text. */
export function formatSection(title: string, text: string): string {
  return text.trim() === "" ? "" : `# ${title}\n\n${text.trim()}\n`;
}

function formatIdentity({ worker, message }: RunContext): string {
  return [
    `You are ${worker.name}, a worker of a service that runs agents.${
      worker.description === "" ? "" : ` ${worker.description}`
    }`,
    `You work in the directory ${worker.work_dir}. No person watches you: decide yourself what you can find out or take back later, and say in your answer what is still open.`,
    hasConversation(message.session_key)
      ? "Your last words are sent as your reply. Say in them what came of it; the one who reads them has seen nothing of your work."
      : "Your last words are kept as the result of this task.",
  ].join("\n");
}

const INTERRUPTED = "You started this task before and were interrupted. Check first what is already done.";

function formatEntries(memory: Record<string, string>, scope: string, leftOut: number): string {
  const lines: string[] = [];
  const more = `(there is more: svc ctl memory get --scope ${quoteShellWord(scope)})`;
  let left = MEMORY_MAX_CHARACTERS;
  for (const [key, value] of Object.entries(memory)) {
    if (left <= 0) return [...lines, more].join("\n");
    const line = `- ${key}: ${cutText(value, MEMORY_VALUE_MAX_CHARACTERS)}`;
    left -= line.length;
    lines.push(line.replaceAll("\n", "\n  "));
  }
  return (leftOut > 0 ? [...lines, more] : lines).join("\n");
}

// Contains no shell variables, because some engines without full permissions refuse commands with variables.
function formatService({ id, session_key }: RunContext["message"], ctl: string): string {
  const scope = `--scope ${quoteShellWord(session_key)}`;
  const talk = hasConversation(session_key)
    ? [
      "- send a message before you are done, such as progress (not your answer: the service sends it automatically):",
      `  echo "half of it is done" | svc ctl message send --message-id ${quoteShellWord(id)} --stdin`,
      "- send a file, one per call:",
      `  svc ctl message send --message-id ${quoteShellWord(id)} --media-path report.pdf`,
    ]
    : [];
  return [
    `From your shell you reach the service with \`svc ctl\`. Should svc not be found, its path is ${ctl}.`,
    "The service refuses calls that your token does not allow. Useful commands:",
    ...talk,
    "- ask a person, when only a person can decide and a wrong guess would do harm or waste the work:",
    "  svc ctl ask 'Delete the old backups, too?' --option Yes --option No",
    "  Then end your turn immediately: the answer arrives as a new task. With --default No --timeout 2h the work continues without an answer; with --wait 60s",
    "  the command prints an answer that arrives in time. People see a question that is only in your answer after you are done.",
    "- remember something for the next time, or look it up:",
    `  svc ctl memory save ${scope} --key <key> --value <value>`,
    `  svc ctl memory get ${scope}`,
    "- see what else there is: svc ctl --help",
  ].join("\n");
}

/** Formats the section with the conversation. `user` names the user in its lines, and `maxCharacters` limits each message. */
export function formatConversation(
  entries: readonly ConversationEntry[],
  user: string,
  maxCharacters: number,
): string {
  const lines = entries.map(({ role, content, ts }) =>
    `[${new Date(ts).toISOString()}] ${role === "user" ? user : "answer"}: ${cutText(content, maxCharacters)}`
  );
  return formatSection("The conversation so far", lines.join("\n"));
}

/** Formats the id of a message and the list of its files. */
export function formatMessageHead(
  { id, attachments }: { id: string; attachments: readonly Media[] },
): string {
  const files = attachments.map(({ path, original_name, mime, size }) =>
    `- ${path} (${original_name}, ${mime}, ${size} bytes)`
  );
  return [`Message id: ${id}`, ...(files.length === 0 ? [] : ["Attached files:", ...files])].join("\n");
}

/** Cuts a text to `maxCharacters` and adds its full length. */
export function cutText(text: string, maxCharacters: number): string {
  return text.length <= maxCharacters
    ? text
    : `${text.slice(0, maxCharacters)} … (${text.length} characters)`;
}

interface PromptPart {
  text: string;
  /** Parts with a number are shortened in a prompt that is too large, lowest number first. Others stay whole. */
  give?: number;
}

/** Default of limits.max_prompt_bytes. */
export const PROMPT_MAX_BYTES = 1024 * 1024;

const LEFT_OUT = "\n(The rest is left out: the prompt would be larger than limits.max_prompt_bytes.)\n";

/**
 * Joins the parts to one prompt and shortens the parts with `give` until it has at most `maxBytes`. A note marks each cut
 * (contract 8.18).
 */
export function fitPrompt(parts: readonly PromptPart[], maxBytes: number): string {
  const given = parts.filter(({ text }) => text !== "");
  const texts = given.map(({ text }) => text);
  let over = countBytes(texts.join("\n")) - maxBytes;
  const order = given.map((_, index) => index)
    .filter((index) => given[index]?.give !== undefined)
    .sort((a, b) => (given[a]?.give ?? 0) - (given[b]?.give ?? 0));
  for (const index of order) {
    if (over <= 0) break;
    const text = texts[index] ?? "";
    const bytes = countBytes(text);
    const shorter = cutToBytes(text, Math.max(0, bytes - over - countBytes(LEFT_OUT))) + LEFT_OUT;
    if (countBytes(shorter) >= bytes) continue;
    texts[index] = shorter;
    over -= bytes - countBytes(shorter);
  }
  return texts.join("\n");
}
