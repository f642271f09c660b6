import type { Service } from "../api/service.ts";
import type { Database } from "../store/database.ts";
import { type ConversationEvent, listConversationEvents, startOfReplay } from "../store/chat.ts";
import { journalRange } from "../store/journal.ts";
import type { Claims } from "../base/token.ts";
import { conversationBell } from "../base/bells.ts";
import { encoded, eventStream, frame, resumePoint, type StreamStep } from "./stream.ts";

// One message more than fits is never cut, so a step is at most twice as large.
const STEP = { events: 100, contentBytes: 256 * 1024 };
// After a reset the client gets this much again; older messages are in the history.
const REPLAY_MAX_EVENTS = 1_000;

/** What a `status` event says (contract 4, Stream). */
type State = "received" | "routing" | "queued" | "working" | "idle";

/** GET /api/local/sessions/:id/stream: replies and states of one conversation (interface 6, contract 4). */
export async function conversationStream(
  service: Service,
  options: { sessionKey: string; claims: Claims; lastEventId: string | null; after: number | undefined },
): Promise<Response> {
  const { db } = service;
  const { sessionKey } = options;
  const range = await journalRange(db);
  const point = resumePoint(options.lastEventId, options.after, range);
  const after = point === "now"
    ? range.last
    : point === "reset"
    ? await startOfReplay(db, sessionKey, REPLAY_MAX_EVENTS)
    : point;
  return eventStream(service, {
    claims: options.claims,
    bell: conversationBell(sessionKey),
    after,
    opening: point === "reset" ? frame("reset", { after }) : "",
    step: (from) => step(service, sessionKey, from),
  });
}

// Everybody who follows a conversation asks the same at the same time.
function step({ db }: Service, sessionKey: string, after: number): Promise<StreamStep> {
  const work = () => readStep(db, sessionKey, after);
  return db.unlessChanged(`conversation ${after} ${sessionKey}`, work, ({ frames }) => frames.length);
}

async function readStep(db: Database, sessionKey: string, after: number): Promise<StreamStep> {
  const events = await listConversationEvents(db, sessionKey, after, STEP);
  const frames = encoded(events.map(toFrame));
  const last = events.at(-1)?.seq ?? after;
  const deleted = events.some((event) => event.kind === "chat.deleted");
  return { frames, after: last, ...(deleted ? { ended: "deleted" as const } : {}) };
}

function toFrame(event: ConversationEvent): string {
  if (event.message !== null) return frame("message", event.message, event.seq);
  const state = stateOf(event);
  if (state === null) return "";
  const working = state === "queued" || state === "working";
  const data = working
    ? { state, worker_name: event.worker_name, task_id: event.task_id }
    : { state, worker_name: "", task_id: null };
  return frame("status", data, event.seq);
}

function stateOf(event: ConversationEvent): State | null {
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
