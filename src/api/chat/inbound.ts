import { newId } from "../../base/id.ts";
import { invalid } from "../../domain/call/error.ts";
import { byteLength, cutToBytes } from "../../base/bytes.ts";
import { CONTENT_MAX_BYTES } from "../../domain/call/field.ts";
import {
  furtherId,
  ownMessageId,
  PLACE_MAX_CHARACTERS,
  placeOf,
  platformKey,
  platformMessageId,
} from "../../domain/chat/platform.ts";
import type { Gap, Heard, Incoming, Received } from "../../platform/platform.ts";
import { isDuplicate } from "../../store/db/database.ts";
import { insertInbound } from "../../store/chat/inbound.ts";
import { record } from "../../store/events/journal.ts";
import { isPaired } from "../../store/chat/platform.ts";
import {
  deleteOver,
  findByPlatformId,
  findSentAs,
  insertOver,
  listLastHeard,
  wasOver,
} from "../../store/chat/platform_message.ts";
import { findSetting, saveSetting } from "../../store/db/setting.ts";
import { receiveClick } from "./button_press.ts";
import { greetStranger } from "./pairing.ts";
import type { Deps } from "../call/services.ts";
import { IGNORED, type PlatformRules, senderActor } from "../call/platforms.ts";
import { say } from "./send_notice.ts";

// Conversations whose history is read after a gap.
const CONVERSATIONS_HEARD_MAX = 50;
const NAME_SHOWN_CHARACTERS = 100;
const CUT_NOTE = "\n[the rest was too long and is left out]";

/** Who said it, and how many tasks of agents led to it (contract 2.9). */
interface Origin {
  actor: string;
  depth: number;
}

/**
 * What comes in from every platform: stored before it is acknowledged, once for each id, and only from those who may speak
 * (contract 10.1, contract 10.2). Throws `invalid_request` for ids that cannot be stored.
 */
export async function receiveMessage(
  needs: Deps<"db" | "clock" | "limits">,
  rules: PlatformRules,
  given: Incoming,
  { actor = senderActor(rules.name, given.sender.id), depth = 0 }: Partial<Origin> = {},
): Promise<Received> {
  const incoming = cleaned(given, rules);
  if (!incoming.isData && !await mayReach(needs, rules, incoming)) {
    return incoming.isDirect ? await greetStranger(needs, rules, incoming) : IGNORED;
  }
  if (incoming.choice !== "") return await receiveClick(needs, rules, incoming);
  return await store(needs, rules, incoming, { actor, depth });
}

/** What was heard last in the latest conversations of a platform (contract 10.1). */
export async function lastHeard({ db }: Deps<"db">, platform: string): Promise<Heard[]> {
  const rows = await listLastHeard(db, platform, CONVERSATIONS_HEARD_MAX);
  return rows.flatMap(({ session_key, last }) =>
    last === null ? [] : [{ ...placeOf(session_key), id: ownMessageId(last) }]
  );
}

/** Where the gap of a platform begins that it has not read yet, kept over restarts. */
export function gapOf({ db }: Deps<"db">, platform: string): Gap {
  const name = `gap:${platform}` as const;
  return {
    find: async () => await findSetting(db, name) ?? "",
    save: async (heardUpTo) => void await db.write([saveSetting(name, heardUpTo)]),
  };
}

/** Whether this is to be heard: said to us, by somebody who was allowed (contract 10.2). */
async function mayReach(
  { db }: Deps<"db">,
  { name, allow, groups }: PlatformRules,
  { isDirect, isMentioned, chat, sender, choice }: Incoming,
): Promise<boolean> {
  // A button is where a question of ours is.
  if (!isDirect && choice === "" && (groups === "off" || groups === "mention" && !isMentioned)) return false;
  if (allow.includes("*") || allow.includes(sender.id) || allow.includes(chat)) return true;
  return await isPaired(db, name, sender.id);
}

async function store(
  { db, clock, limits }: Deps<"db" | "clock" | "limits">,
  { name }: PlatformRules,
  incoming: Incoming,
  { actor, depth }: Origin,
): Promise<Received> {
  const now = clock.now();
  const key = platformKey(name, incoming);
  const replyTo = incoming.repliesTo === "" ? "" : await findSentAs(db, key, incoming.repliesTo);
  const rows = rowsOf(name, incoming, { replyTo, depth, now });
  const [first] = rows;
  if (first === undefined) return IGNORED;
  const event = (kind: "message.received" | "message.failed", data = {}) =>
    record(now, { kind, session_key: key, message_id: first.id, actor, data });
  const taken = [
    ...rows.flatMap((row) => insertInbound(row, limits.max_waiting_messages)),
    event("message.received"),
  ];
  try {
    const { won } = await db.write(taken);
    if (won) return { outcome: "queued", message_id: first.id };
    // Told once: who goes on writing knows already.
    const error = `${limits.max_waiting_messages} messages of this conversation wait already`;
    const told = await wasOver(db, key, error);
    await db.write([
      insertOver(first, error),
      event("message.failed", { error }),
      ...(told ? [] : say(
        name,
        key,
        first.id,
        `Too many messages wait already, so this one was not taken: ${error}.`,
        now,
      )),
    ]);
    return { outcome: "over", message_id: first.id };
  } catch (error) {
    if (!isDuplicate(error)) throw error;
    const earlier = await findByPlatformId(db, name, first.platform_message_id);
    if (!earlier?.over || !incoming.isData) return { outcome: "repeated", message_id: earlier?.id ?? "" };
    // A program that was told "too many" sends it again: that is another try, and no repetition.
    const again = await db.write([...deleteOver(earlier.id), ...taken]);
    return again.won
      ? { outcome: "queued", message_id: first.id }
      : { outcome: "over", message_id: earlier.id };
  }
}

/** A message with several files is several rows, which the quiet window joins again. */
function rowsOf(
  platform: string,
  incoming: Incoming,
  { replyTo, depth, now }: { replyTo: string; depth: number; now: number },
) {
  const { chat, id, sender, text, files, isData, isDirect } = incoming;
  const row = {
    session_key: platformKey(platform, incoming),
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
  const attachments = files.length === 0 ? [""] : files.map((file) => JSON.stringify(file));
  return attachments.map((attachment, at) => ({
    ...row,
    id: newId(),
    platform_message_id: platformMessageId(chat, at === 0 ? id : furtherId(id, at + 1)),
    content: at === 0 ? text : "",
    attachment,
  })).filter(({ content, attachment }) => content.trim() !== "" || attachment !== "");
}

function cleaned(incoming: Incoming, { threads }: PlatformRules): Incoming {
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
    text: cutToLimit(incoming.text.toWellFormed().replaceAll("\0", "")),
  };
}

function cutToLimit(text: string): string {
  if (byteLength(text) <= CONTENT_MAX_BYTES) return text;
  return cutToBytes(text, CONTENT_MAX_BYTES - byteLength(CUT_NOTE)) + CUT_NOTE;
}
