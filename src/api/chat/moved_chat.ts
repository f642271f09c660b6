import { createLogger } from "../../base/log.ts";
import { formatPlatformKey, PLACE_MAX_CHARACTERS } from "../../domain/chat/platform.ts";
import { moveConversation } from "../../store/chat/moved_conversation.ts";
import type { Database } from "../../store/db/database.ts";
import { findSetting, storeSetting } from "../../store/db/setting.ts";
import type { Deps } from "../call/services.ts";

const log = createLogger("platform");

/** Maps old ids of chats to new ids. */
export type MovedChats = Readonly<Record<string, string>>;

export async function findMovedChats(db: Database, platform: string): Promise<MovedChats> {
  return JSON.parse(await findSetting(db, `moved:${platform}`) ?? "{}");
}

/** Returns the current id of a chat. */
export function resolveChat(moved: MovedChats, chat: string): string {
  return Object.hasOwn(moved, chat) ? moved[chat] ?? chat : chat;
}

/**
 * Moves the conversation of a chat to the chat's new id: open replies, tasks, schedules, questions, memory and engine sessions. The same
 * batch stores the new id. Repeating a move only moves rows that a run has stored under the old id since.
 */
export async function moveChat(
  { db }: Deps<"db">,
  platform: string,
  from: string,
  to: string,
): Promise<void> {
  const isValid = [from, to].every((id) => id !== "" && id.length <= PLACE_MAX_CHARACTERS) && from !== to;
  const moved = await findMovedChats(db, platform);
  // If a chat moved back, neither id would be the current one.
  if (!isValid || resolveChat(moved, to) !== to) return;
  const earlier = Object.entries(moved).map(([old, current]) => [old, current === from ? to : current]);
  await db.write([
    storeSetting(`moved:${platform}`, JSON.stringify(Object.fromEntries([...earlier, [from, to]]))),
    ...moveConversation(
      formatPlatformKey(platform, { chat: from, thread: "" }),
      formatPlatformKey(platform, { chat: to, thread: "" }),
    ),
  ]);
  log.info("Chat {from} of {platform} has the new id {to}", { from, platform, to });
}
