import type { Conversation, ConversationFilter } from "../../domain/chat/conversation.ts";
import { boundTo } from "../../domain/call/scope.ts";
import { type ConversationEvent, listConversationEvents, startOfReplay } from "../../store/chat/chat.ts";
import { listConversations as listConversationRows } from "../../store/chat/conversation.ts";
import { type Answer, page } from "../call/answer.ts";
import type { Call } from "../call/call.ts";
import type { Deps } from "../call/services.ts";
import { resume, type StreamStart } from "../call/stream_start.ts";

export type { ConversationEvent };

// A message is never split, so a step may be larger by one message.
const STEP = { events: 100, contentBytes: 256 * 1024 };
// After a reset the client gets this many of the latest events. Older messages are in the history.
const REPLAY_MAX_EVENTS = 1_000;

/** Lists the conversations of all platforms, latest first. A run sees only its own. */
export async function listConversations(
  { db }: Deps<"db">,
  call: Call,
  filter: ConversationFilter,
): Promise<Answer<Conversation[]>> {
  return page(await listConversationRows(db, filter, boundTo(call.caller), filter));
}

export function findStreamStart(
  { db }: Deps<"db">,
  sessionKey: string,
  wanted: number | null,
): Promise<StreamStart> {
  return resume(db, wanted, () => startOfReplay(db, sessionKey, REPLAY_MAX_EVENTS));
}

interface ConversationStep {
  /** The events after `after`, formatted by `render`. */
  rendered: Uint8Array;
  after: number;
  /** The conversation was deleted. */
  deleted: boolean;
}

/**
 * Reads the next events after number `after`. All clients of a conversation read at the same time and share the result
 * of `render`.
 */
export function readConversation(
  { db }: Deps<"db">,
  sessionKey: string,
  after: number,
  render: (events: readonly ConversationEvent[]) => Uint8Array,
): Promise<ConversationStep> {
  const read = async () => {
    const events = await listConversationEvents(db, sessionKey, after, STEP);
    return {
      rendered: render(events),
      after: events.at(-1)?.seq ?? after,
      deleted: events.some((event) => event.kind === "chat.deleted"),
    };
  };
  return db.unlessChanged(`conversation ${after} ${sessionKey}`, read, ({ rendered }) => rendered.length);
}
