import { eventFilterOf, eventJson, eventRange } from "../api/event.ts";
import type { Call, Service } from "../api/service.ts";
import type { EventFilter } from "../domain/journal.ts";
import { listEvents } from "../store/journal.ts";
import type { Claims } from "../base/token.ts";
import { BELL } from "../base/bells.ts";
import { encoded, eventStream, frame, resumePoint } from "./stream.ts";

const EVENTS_PER_STEP = 200;
// After a reset the client gets this much again.
const REPLAY_MAX_EVENTS = 1_000;

/** GET /api/events as a stream: every journal entry as an event called `event` (contract 4, Stream). */
export async function journalStream(
  service: Service,
  call: Call,
  filter: EventFilter,
  client: { claims: Claims; lastEventId: string | null },
): Promise<Response> {
  const bounded = eventFilterOf(call, filter);
  const range = await eventRange(service);
  const point = resumePoint(client.lastEventId, filter.after, range);
  const oldest = Math.max(0, range.first - 1, range.last - REPLAY_MAX_EVENTS);
  const after = point === "now" ? range.last : point === "reset" ? oldest : point;
  return eventStream(service, {
    claims: client.claims,
    bell: BELL.journal,
    after,
    opening: point === "reset" ? frame("reset", { after }) : "",
    step: async (from) => {
      const rows = await listEvents(service.db, from, EVENTS_PER_STEP, bounded);
      return {
        frames: encoded(rows.map((row) => frame("event", eventJson(row), row.seq))),
        after: rows.at(-1)?.seq ?? from,
      };
    },
  });
}
