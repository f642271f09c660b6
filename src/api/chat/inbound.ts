import { createId } from "../../base/id.ts";
import { invalid } from "../../domain/call/error.ts";
import {
  cutContent,
  formatExcerpt,
  formatUnreadable,
  formatUnreadableNotice,
} from "../../domain/chat/excerpt.ts";
import {
  formatFurtherId,
  formatPlatformKey,
  formatPlatformMessageId,
  parseOwnMessageId,
  parsePlace,
  PLACE_MAX_CHARACTERS,
} from "../../domain/chat/platform.ts";
import { cleanFileName } from "../../files/file_name.ts";
import type { Gap, IncomingMessage, LastMessage, ReceiveResult } from "../../platform/platform.ts";
import { isDuplicate } from "../../store/db/database.ts";
import { insertInbound, takeMessage } from "../../store/chat/inbound.ts";
import type { Statement } from "../../store/db/database.ts";
import { record, recordIdle } from "../../store/events/journal.ts";
import { isPaired } from "../../store/chat/platform.ts";
import {
  deleteRefusedMessage,
  findByPlatformId,
  findOutboundIdBySentAs,
  hasLastError,
  insertRefusedMessage,
  listLastReceivedRows,
} from "../../store/chat/platform_message.ts";
import { findSetting, storeSetting } from "../../store/db/setting.ts";
import { isAlbumMentioned, rememberAlbum } from "./album.ts";
import { findMovedChats, type MovedChats, resolveChat } from "./moved_chat.ts";
import { greetStranger } from "./pairing.ts";
import type { Deps } from "../call/services.ts";
import { formatSenderActor, IGNORED, type PlatformRules } from "../call/platforms.ts";
import { buildNotice } from "./send_notice.ts";
import { readChoice } from "../../domain/call/choice.ts";
import { mayAnswer } from "../../domain/work/approval.ts";
import { answerByMessage } from "../../store/chat/answered_message.ts";
import { listOpenQuestions } from "../../store/work/question.ts";

// Conversations whose history is read after a gap.
const CONVERSATIONS_HEARD_MAX = 50;
const NAME_SHOWN_CHARACTERS = 100;
const NOUN_SHOWN_CHARACTERS = 100;

/** The sender, and the number of agent tasks that led to the message. */
interface Origin {
  actor: string;
  depth: number;
}

/**
 * Stores a message from a platform before acknowledging it, once per id and only from allowed senders (contract 10.1,
 * contract 10.2). Throws `invalid_request` for ids that cannot be stored.
 */
export async function receiveMessage(
  deps: Deps<"db" | "clock" | "limits">,
  rules: PlatformRules,
  given: IncomingMessage,
  { actor = formatSenderActor(rules.name, given.sender.id), depth = 0 }: Partial<Origin> = {},
): Promise<ReceiveResult> {
  const cleaned = cleanIncoming(await readAlbum(deps, rules, given), rules);
  // Most messages of a busy group end here, before the service reads moved chats and pairings.
  if (!isAddressed(cleaned, rules)) return IGNORED;
  const moved = cleaned.isDirect ? {} : await findMovedChats(deps.db, rules.name);
  const incoming = followMove(cleaned, moved);
  if (!incoming.isData && !await isAllowed(deps, rules, incoming, moved)) {
    return incoming.isDirect ? await greetStranger(deps, rules, incoming) : IGNORED;
  }
  if (incoming.choice !== "") return await receiveButtonPress(deps, rules, incoming);
  return await storeIncoming(deps, rules, incoming, { actor, depth });
}

/** Lists the last received message of each recent conversation on a platform. */
export async function listLastReceived({ db }: Deps<"db">, platform: string): Promise<LastMessage[]> {
  const rows = await listLastReceivedRows(db, platform, CONVERSATIONS_HEARD_MAX);
  return rows.flatMap(({ session_key, last }) =>
    last === null ? [] : [{ ...parsePlace(session_key), id: parseOwnMessageId(last) }]
  );
}

/** Creates a store for the position up to which a platform has read missed messages. The position survives restarts. */
export function createGapStore({ db }: Deps<"db">, platform: string): Gap {
  const name = `gap:${platform}` as const;
  return {
    find: async () => await findSetting(db, name) ?? "",
    save: async (heardUpTo) => void await db.write([storeSetting(name, heardUpTo)]),
  };
}

async function readAlbum(
  { db }: Deps<"db">,
  { name }: PlatformRules,
  incoming: IncomingMessage,
): Promise<IncomingMessage> {
  if (incoming.isMentioned || !await isAlbumMentioned(db, name, incoming)) return incoming;
  return { ...incoming, isMentioned: true };
}

/**
 * Replaces the old id of a chat with its new id. Adds the old chat's id to the message ids, because the new chat numbers its messages anew.
 */
function followMove(incoming: IncomingMessage, moved: MovedChats): IncomingMessage {
  const { chat: old, id, repliesTo } = incoming;
  const chat = resolveChat(moved, old);
  if (chat === old) return incoming;
  return { ...incoming, chat, id: `${old}/${id}`, repliesTo: repliesTo === "" ? "" : `${old}/${repliesTo}` };
}

/** Checks that a message addresses the service (contract 10.2). */
function isAddressed({ isDirect, isMentioned, choice }: IncomingMessage, { groups }: PlatformRules): boolean {
  // Buttons exist only on the service's own questions, so a press needs no mention.
  if (isDirect || choice !== "") return true;
  return groups === "all" || groups === "mention" && isMentioned;
}

/** Checks that a message comes from an allowed sender or chat (contract 10.2). */
async function isAllowed(
  { db }: Deps<"db">,
  { name, allow }: PlatformRules,
  { chat, sender }: IncomingMessage,
  moved: MovedChats,
): Promise<boolean> {
  if (allow.includes("*") || allow.includes(sender.id)) return true;
  if (allow.some((one) => resolveChat(moved, one) === chat)) return true;
  return await isPaired(db, name, sender.id);
}

async function storeIncoming(
  { db, clock, limits }: Deps<"db" | "clock" | "limits">,
  { name }: PlatformRules,
  incoming: IncomingMessage,
  { actor, depth }: Origin,
): Promise<ReceiveResult> {
  const now = clock.now();
  const key = formatPlatformKey(name, incoming);
  const replyTo = incoming.repliesTo === "" ? "" : await findOutboundIdBySentAs(db, key, incoming.repliesTo);
  const rows = buildRows(name, incoming, { replyTo, depth, now });
  const [first] = rows;
  if (first === undefined) return IGNORED;
  const event = (kind: "message.received" | "message.failed", data = {}) =>
    record(now, { kind, session_key: key, message_id: first.id, actor, data });
  const statements = [
    ...rows.flatMap((row) => insertInbound(row, limits.max_waiting_messages)),
    event("message.received"),
    ...reportUnreadable(name, incoming, first, now),
    ...await rememberAlbum(db, name, incoming),
  ];
  try {
    const { won } = await db.write(statements);
    if (won) return { outcome: "queued", message_id: first.id };
    // Sends one notice, even when the sender keeps writing.
    const error = `${limits.max_waiting_messages} messages of this conversation are already waiting`;
    const wasNotified = await hasLastError(db, key, error);
    await db.write([
      insertRefusedMessage(first, error),
      event("message.failed", { error }),
      ...(wasNotified ? [] : buildNotice(
        name,
        key,
        first.id,
        `Cannot accept this message: ${error}. Try again later.`,
        now,
      )),
    ]);
    return { outcome: "over", message_id: first.id };
  } catch (error) {
    if (!isDuplicate(error)) throw error;
    const earlier = await findByPlatformId(db, name, first.platform_message_id);
    if (!earlier?.over || !incoming.isData) return { outcome: "repeated", message_id: earlier?.id ?? "" };
    // A program that got the notice sends the message again: a retry, not a repetition.
    const again = await db.write([...deleteRefusedMessage(earlier.id), ...statements]);
    return again.won
      ? { outcome: "queued", message_id: first.id }
      : { outcome: "over", message_id: earlier.id };
  }
}

/** Builds the notice that names the unreadable content. The same batch stores the message. A message without other content ends here. */
function reportUnreadable(
  platform: string,
  { unreadable, ...rest }: IncomingMessage,
  { id, session_key }: { id: string; session_key: string },
  now: number,
): Statement[] {
  if (unreadable.length === 0) return [];
  const isRestRead = hasContent(rest);
  const notice = buildNotice(platform, session_key, id, formatUnreadableNotice(unreadable, isRestRead), now);
  if (isRestRead) return notice;
  const data = { reason: "the service cannot read the message" };
  return [
    ...takeMessage(id, "reply", now),
    record(now, { kind: "message.routed", session_key, message_id: id, data }),
    ...notice,
    recordIdle(now, session_key),
  ];
}

function hasContent(
  { text, excerpts, files }: Pick<IncomingMessage, "text" | "excerpts" | "files">,
): boolean {
  return text.trim() !== "" || files.length > 0 || excerpts.some((one) => formatExcerpt(one) !== "");
}

/** Composes the stored content: the person's own text, then quoted and forwarded messages as data. */
export function composeContent(
  { text, excerpts, unreadable }: Pick<IncomingMessage, "text" | "excerpts" | "unreadable">,
): string {
  const data = [...excerpts.map(formatExcerpt), formatUnreadable(unreadable)].filter((part) => part !== "");
  return data.length === 0
    ? text
    : cutContent([text, ...data].filter((part) => part.trim() !== "").join("\n"));
}

// A message with several files becomes several rows, which the debounce window joins.
function buildRows(
  platform: string,
  incoming: IncomingMessage,
  { replyTo, depth, now }: { replyTo: string; depth: number; now: number },
) {
  const { chat, id, sender, files, isData, isDirect } = incoming;
  const row = {
    session_key: formatPlatformKey(platform, incoming),
    platform,
    sender: sender.id,
    sender_name: sender.name,
    media: null,
    alone: false,
    reply_to: replyTo,
    is_direct: isDirect,
    is_data: isData,
    depth,
    received_at: now,
  };
  const attachments = files.length === 0
    ? [""]
    : files.map((file) => JSON.stringify({ ...file, name: cleanFileName(file.name) }));
  return attachments.map((attachment, at) => ({
    ...row,
    id: createId(),
    platform_message_id: formatPlatformMessageId(chat, at === 0 ? id : formatFurtherId(id, at + 1)),
    content: at === 0 ? composeContent(incoming) : "",
    attachment,
  })).filter(({ content, attachment }) => content.trim() !== "" || attachment !== "");
}

function cleanIncoming(incoming: IncomingMessage, { threads }: PlatformRules): IncomingMessage {
  for (
    const [field, value] of [["conversation", incoming.chat], ["thread", incoming.thread], [
      "id",
      incoming.id,
    ]]
  ) {
    if ((value ?? "").length > PLACE_MAX_CHARACTERS) {
      throw invalid(field ?? "", `must be at most ${PLACE_MAX_CHARACTERS} characters`);
    }
  }
  const line = (text: string) => text.toWellFormed().replace(/[\p{Cc}\p{Cf}\u2028\u2029]+/gu, " ").trim();
  return {
    ...incoming,
    thread: threads === "chat" ? "" : incoming.thread,
    sender: {
      id: line(incoming.sender.id),
      name: line(incoming.sender.name).slice(0, NAME_SHOWN_CHARACTERS),
    },
    text: cutContent(incoming.text.toWellFormed().replaceAll("\0", "")),
    // A message without a mention does not address the service, so its sender gets no notice.
    unreadable: incoming.isDirect || incoming.isMentioned
      ? incoming.unreadable.map((noun) => line(noun).replace(/[@[\]]/g, "").slice(0, NOUN_SHOWN_CHARACTERS))
      : [],
  };
}

const LATE: ReceiveResult = { outcome: "late", message_id: "" };

/** Stores a button press as a message and as the answer, unless the question is closed (contract 12). */
async function receiveButtonPress(
  { db, clock, limits }: Deps<"db" | "clock" | "limits">,
  { name }: PlatformRules,
  incoming: IncomingMessage,
): Promise<ReceiveResult> {
  const { chat, id, sender, isDirect } = incoming;
  const now = clock.now();
  const key = formatPlatformKey(name, incoming);
  const chosen = readChoice(incoming.choice);
  if (chosen === null) return LATE;
  const open = await listOpenQuestions(db, [key]);
  const question = open.find((one) => one.id === chosen.questionId);
  const answer = question?.options[chosen.option];
  if (question === undefined || answer === undefined) return LATE;
  if (!mayAnswer(question, { platform: name, sender: sender.id, direct: isDirect })) return IGNORED;
  const by = formatSenderActor(name, sender.id);
  const message = {
    id: createId(),
    session_key: key,
    platform: name,
    platform_message_id: formatPlatformMessageId(chat, formatFurtherId(incoming.repliesTo, `click-${id}`)),
    sender: sender.id,
    sender_name: sender.name,
    content: answer,
    media: null,
    alone: false,
    reply_to: "",
    depth: 0,
    is_direct: isDirect,
    received_at: now,
  };
  try {
    const { won } = await db.write([
      ...insertInbound(message, limits.max_waiting_messages),
      record(now, { kind: "message.received", session_key: key, message_id: message.id, actor: by }),
      ...answerByMessage({ message, question, answer, by, taskId: createId() }, now),
    ]);
    return won ? { outcome: "queued", message_id: message.id } : LATE;
  } catch (error) {
    if (!isDuplicate(error)) throw error;
    return { outcome: "repeated", message_id: "" };
  }
}
