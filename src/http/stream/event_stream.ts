import type { Call } from "../../api/call/call.ts";
import type { Operations } from "../../api/operations.ts";
import { WAKEUP } from "../../base/wakeups.ts";
import type { EventFilter } from "../../domain/system/journal.ts";
import type { StreamParts } from "../http_deps.ts";
import { encoded, eventStream, frame, resetFrame, type StreamClient, wantedEvent } from "./event_source.ts";

/** Streams journal entries as events named `event` (contract 4, Stream). */
export async function journalStream(
  { api, streams }: { api: Operations; streams: StreamParts },
  call: Call,
  filter: EventFilter,
  client: StreamClient,
): Promise<Response> {
  const start = await api.event.findStart(call, filter, wantedEvent(client));
  return eventStream(streams, {
    whyEnded: client.whyEnded,
    wakeup: WAKEUP.journal,
    after: start.after,
    opening: resetFrame(start),
    step: async (from) => {
      const events = await api.event.read(call, filter, from);
      return {
        frames: encoded(events.map(({ seq, json }) => frame("event", json, seq))),
        after: events.at(-1)?.seq ?? from,
      };
    },
  });
}
