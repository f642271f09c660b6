import type { ConversationEvent } from "../../api/chat/conversation.ts";
import type { Operations } from "../../api/operations.ts";
import { getConversationWakeup } from "../../base/wakeups.ts";
import type { ChatState } from "../../domain/call/vocabulary.ts";
import type { StreamDeps } from "../http_deps.ts";
import {
  buildEventStream,
  buildResetFrame,
  encodeFrames,
  findResumeNumber,
  formatFrame,
  type StreamClient,
} from "./event_source.ts";

/** Streams the replies and states of one conversation (contract 4, Stream). */
export async function openConversationStream(
  { api, streams }: { api: Operations; streams: StreamDeps },
  sessionKey: string,
  client: StreamClient,
): Promise<Response> {
  const start = await api.chat.findStreamStart(sessionKey, findResumeNumber(client));
  return buildEventStream(streams, {
    whyEnded: client.whyEnded,
    wakeup: getConversationWakeup(sessionKey),
    after: start.after,
    opening: buildResetFrame(start),
    step: async (from) => {
      const { rendered, after, deleted } = await api.chat.readStream(sessionKey, from, renderFrames);
      return { frames: rendered, after, ...(deleted ? { ended: "deleted" as const } : {}) };
    },
  });
}

function renderFrames(events: readonly ConversationEvent[]): Uint8Array {
  return encodeFrames(events.map(toFrame));
}

function toFrame(event: ConversationEvent): string {
  if (event.message !== null) return formatFrame("message", event.message, event.seq);
  const state = findState(event);
  if (state === null) return "";
  const working = state === "queued" || state === "working";
  const data = working
    ? { state, worker_name: event.worker_name, task_id: event.task_id }
    : { state, worker_name: "", task_id: null };
  return formatFrame("status", data, event.seq);
}

function findState(event: ConversationEvent): ChatState | null {
  switch (event.kind) {
    case "message.received":
      return "received";
    case "message.feeding":
      return "routing";
    case "task.created":
      return event.status === "pending" ? "queued" : null;
    case "task.due":
    case "task.requeued":
      return "queued";
    case "execution.started":
      return "working";
    case "session.idle":
      return "idle";
    default:
      return null;
  }
}
