import type { Call } from "../../api/call/call.ts";
import type { Operations } from "../../api/operations.ts";
import { WAKEUP } from "../../base/wakeups.ts";
import type { EventFilter } from "../../domain/system/journal.ts";
import type { StreamDeps } from "../http_deps.ts";
import {
  buildEventStream,
  buildResetFrame,
  encodeFrames,
  findResumeNumber,
  formatFrame,
  type StreamClient,
} from "./event_source.ts";

/** Streams journal entries as events named `event` (contract 4, Stream). */
export async function openJournalStream(
  { api, streams }: { api: Operations; streams: StreamDeps },
  call: Call,
  filter: EventFilter,
  client: StreamClient,
): Promise<Response> {
  const start = await api.event.findStart(call, filter, findResumeNumber(client));
  return buildEventStream(streams, {
    whyEnded: client.whyEnded,
    wakeup: WAKEUP.journal,
    after: start.after,
    opening: buildResetFrame(start),
    step: async (from) => {
      const events = await api.event.read(call, filter, from);
      return {
        frames: encodeFrames(events.map(({ seq, json }) => formatFrame("event", json, seq))),
        after: events.at(-1)?.seq ?? from,
      };
    },
  });
}
