import type { Conversation, ConversationFilter } from "../../domain/chat/conversation.ts";
import { boundTo } from "../../domain/call/scope.ts";
import { type ConversationEvent, listConversationEvents, startOfReplay } from "../../store/chat/chat.ts";
import { listConversations as listConversationRows } from "../../store/chat/conversation.ts";
import { type Answer, page } from "../call/answer.ts";
import type { Call } from "../call/call.ts";
import type { Deps } from "../call/services.ts";
import { resume, type StreamStart } from "../call/stream_start.ts";

export type { ConversationEvent };

// A message is never cut, so a step may be larger by one message.
const STEP = { events: 100, contentBytes: 256 * 1024 };
// After a reset the client gets so many of the latest events; older messages are in the history.
const REPLAY_MAX_EVENTS = 1_000;

/** GET /api/conversations: those of all platforms, the latest first; a run sees its own (contract 17.6). */
export async function listConversations(
  { db }: Deps<"db">,
  call: Call,
  filter: ConversationFilter,
): Promise<Answer<Conversation[]>> {
  return page(await listConversationRows(db, filter, boundTo(call.caller), filter));
}

/** Where the stream of a conversation begins (contract 4, Stream). */
export function findStreamStart(
  { db }: Deps<"db">,
  sessionKey: string,
  wanted: number | null,
): Promise<StreamStart> {
  return resume(db, wanted, () => startOfReplay(db, sessionKey, REPLAY_MAX_EVENTS));
}

/** One step of a conversation's stream. */
interface ConversationStep {
  /** The events after `after`, as `render` made them. */
  rendered: Uint8Array;
  after: number;
  /** The conversation was deleted. */
  deleted: boolean;
}

/**
 * The next events of a conversation after number `after`. All who follow the conversation ask at the same time, so they share
 * what `render` makes.
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
