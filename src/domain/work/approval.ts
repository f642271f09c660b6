import { z } from "zod";
import { digest } from "../../base/bytes.ts";
import { content, id, line, sessionKey, time } from "../call/field.ts";
import { LOCAL_PLATFORM } from "../call/message_id.ts";
import { buildPageQuery } from "../call/page.ts";
import { ALLOW, ALLOW_HERE, APPROVAL_DECISIONS, DENY } from "../call/vocabulary.ts";

const TOOL_MAX_BYTES = 200;
/** Calls with longer arguments are denied, because no person would read them. */
export const CALL_MAX_BYTES = 256 * 1024;
const CALL_PATH_MAX_BYTES = 4_096;
/** A chat shows a call up to this length whole. A longer call can only be denied there. */
export const CALL_SHOWN_MAX_CHARACTERS = 1_000;
const EXCERPT_CHARACTERS = 400;

const APPROVAL_TIMEOUT_MIN_MS = 1_000;
export const APPROVAL_TIMEOUT_MAX_MS = 7 * 86_400_000;

export const RUN_APPROVALS_MAX = 500;
/** A further call replaces the oldest one of the conversation. */
export const REMEMBERED_CALLS_MAX = 200;

/** A tool call of an agent that a person has to allow (contract 23). */
export const approvalCreateSchema = z.strictObject({
  tool: line(TOOL_MAX_BYTES),
  arguments: content(CALL_MAX_BYTES).meta({ description: "as people read them, with masked secrets" }),
  path: content(CALL_PATH_MAX_BYTES).optional().meta({
    description: "the path of a file tool; `Allow in this conversation` then covers the path",
  }),
  digest: z.string().regex(/^[0-9a-f]{64}$/, { error: "must be a SHA-256 in hexadecimal" }).meta({
    description: "SHA-256 of the path or the arguments without masks",
  }),
  timeout_ms: z.int().min(APPROVAL_TIMEOUT_MIN_MS).max(APPROVAL_TIMEOUT_MAX_MS),
}).meta({
  id: "ApprovalCreate",
  examples: [{
    tool: "Bash",
    arguments: '{\n "command": "make deploy"\n}',
    digest: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    timeout_ms: 900_000,
  }],
});
export type ApprovalCreate = z.output<typeof approvalCreateSchema>;

/** `wait` while the question is open. */
export const approvalDecisionSchema = z.strictObject({
  id: z.string().meta({ description: "the question; empty when nobody was asked" }),
  decision: z.enum(APPROVAL_DECISIONS),
  reason: z.string(),
}).meta({ id: "ApprovalDecision" });
export type ApprovalDecision = z.output<typeof approvalDecisionSchema>;

/** A tool call that a person allowed for the rest of a conversation. */
export const approvalSchema = z.strictObject({
  id: id.meta({ description: "the question that a person answered" }),
  session_key: z.string(),
  worker_id: z.string(),
  worker_name: z.string(),
  engine: z.string(),
  tool: z.string(),
  path: z.string().meta({ description: "the path of a file tool; empty: exactly these arguments" }),
  arguments: z.string(),
  allowed_by: z.string(),
  created_at: time,
}).meta({ id: "Approval" });
export type Approval = z.output<typeof approvalSchema>;

export const approvalListQuery = { session_key: sessionKey, ...buildPageQuery() };

/**
 * Returns the key under which a conversation remembers a call. The service computes it from what people see, so that a run cannot
 * have another call remembered than the one in the question.
 */
export function computeCallKey(call: Pick<ApprovalCreate, "tool" | "arguments" | "path" | "digest">): string {
  const { tool, path } = call;
  const covered = path === undefined ? ["arguments", call.arguments] : ["path", path];
  return digest(JSON.stringify([tool, ...covered, call.digest]));
}

/** Returns the answers to a call. Without a conversation nothing can be remembered. */
export function listApprovalOptions(hasConversation: boolean): string[] {
  return hasConversation ? [ALLOW, ALLOW_HERE, DENY] : [ALLOW, DENY];
}

/** Whether a chat cannot show the whole call. */
function isLongCall(args: string): boolean {
  return countCharacters(args) > CALL_SHOWN_MAX_CHARACTERS;
}

/** The answers that a chat offers: a call that it cannot show whole can only be denied there. */
export function listChatOptions({ tool, arguments: args, options }: {
  tool: string;
  arguments: string;
  options: readonly string[];
}): readonly string[] {
  return tool !== "" && isLongCall(args) ? [DENY] : options;
}

interface Sender {
  platform: string;
  sender: string;
}

/**
 * Whether a sender in a chat may answer. In a group, only the person whose message the run works on decides on its tool calls; users
 * decide from everywhere else.
 */
export function mayAnswer(question: Sender & { tool: string }, from: Sender & { direct: boolean }): boolean {
  return question.tool === "" || from.direct || from.platform === LOCAL_PLATFORM ||
    question.platform === from.platform && question.sender === from.sender;
}

/** Formats the question about a call. A fence keeps the words of the agent from being read as formatting. */
export function formatApproval({ tool, arguments: args, path }: ApprovalCreate): string {
  const isLong = isLongCall(args);
  const shown = [tool, isLong ? cutCall(args) : args, ...(path === undefined ? [] : [`path: ${path}`])].join(
    "\n",
  );
  const ticks = [...shown.matchAll(/`+/g)].map(([run]) => run.length);
  const fence = "`".repeat(Math.max(3, ...ticks.map((length) => length + 1)));
  return [
    "Allow this tool call?",
    "",
    fence,
    shown,
    fence,
    ...(isLong
      ? ["", "This is not the whole call. Read it in the console or with `svc ctl question get` to allow it."]
      : []),
    ...(path === undefined ? [] : ["", `"${ALLOW_HERE}" covers every call of this tool for this path.`]),
  ].join("\n");
}

function cutCall(args: string): string {
  const characters = [...args];
  return [
    characters.slice(0, EXCERPT_CHARACTERS).join(""),
    `[... ${characters.length} characters, SHA-256 ${digest(args)} ...]`,
    characters.slice(-EXCERPT_CHARACTERS).join(""),
  ].join("\n");
}

function countCharacters(text: string): number {
  return [...text].length;
}
