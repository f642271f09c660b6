// Events of the journal -> spans, which are sent to a collector of OpenTelemetry (contract 29).
import { LRUCache } from "lru-cache";
import { buildCacheOptions } from "../../base/memoize.ts";
import { WAKEUP } from "../../base/wakeups.ts";
import type { EventKind } from "../../domain/call/vocabulary.ts";
import { buildMessageSpans, buildReplySpan, buildRunSpans } from "../../domain/system/telemetry.ts";
import type { TraceSpan } from "../../domain/system/trace.ts";
import type { RunCalls } from "../../domain/work/run_calls.ts";
import { type JournalRow, listEvents, readJournalRange } from "../../store/events/journal.ts";
import { listTracedMessages, listTracedReplies, listTracedRuns } from "../../store/events/trace.ts";
import { Stage, type StageServices } from "../stage/stage.ts";
import type { SpanQueue } from "./span_queue.ts";

const EVENTS_PER_READ = 100;
// Spans are read aside, so that they cost the next message nothing.
const PAUSE_MS = 250;
/** Messages whose routing has started and not ended. */
const MESSAGES_FED_MAX = 10_000;

const KINDS: readonly EventKind[] = [
  ...["message.feeding", "message.routed", "message.failed", "message.sent", "message.undelivered"] as const,
  ...["execution.completed", "execution.failed"] as const,
];

interface TracesOptions extends StageServices {
  queue: SpanQueue;
  calls: RunCalls;
  /** Whether spans have texts of messages, runs and tools. */
  hasContent: boolean;
}

/**
 * Creates the stage that builds the spans of messages, runs and replies from their rows, from the first event after its start.
 * `readRest` reads the last ones after its end.
 */
export function createTraces(options: TracesOptions): { stage: Stage; readRest: () => Promise<void> } {
  const { db, queue, calls, hasContent } = options;
  const fed = new LRUCache<string, number>(buildCacheOptions(MESSAGES_FED_MAX));
  let cursor: number | null = null;
  const stage = new Stage(options, { name: "telemetry", wakeup: WAKEUP.journal, pauseMs: PAUSE_MS, step });
  return {
    stage,
    async readRest() {
      while (await step() === 0);
    },
  };

  async function step(): Promise<number> {
    cursor ??= (await readJournalRange(db)).last;
    const events = await listEvents(db, cursor, EVENTS_PER_READ, { kinds: [...KINDS] });
    if (events.length === 0) return Infinity;
    for (const { kind, message_id, at } of events) if (kind === "message.feeding") fed.set(message_id, at);
    queue.add(await buildSpans(events));
    cursor = events.at(-1)?.seq ?? cursor;
    return 0;
  }

  async function buildSpans(events: readonly JournalRow[]): Promise<TraceSpan[]> {
    const pick = (kinds: readonly EventKind[], read: (event: JournalRow) => string) => [
      ...new Set(events.filter(({ kind }) => kinds.includes(kind)).map(read)),
    ];
    const messages = await listTracedMessages(
      db,
      pick(["message.routed", "message.failed"], ({ message_id }) => message_id),
    );
    const runs = await listTracedRuns(
      db,
      pick(["execution.completed", "execution.failed"], ({ execution_id }) => execution_id),
    );
    const replies = await listTracedReplies(
      db,
      pick(["message.sent", "message.undelivered"], readReply).filter((id) => id !== ""),
    );
    return [
      ...messages.flatMap((message) => {
        const fedAt = fed.get(message.id) ?? null;
        fed.delete(message.id);
        return buildMessageSpans(message, fedAt, hasContent);
      }),
      ...runs.flatMap((run) => buildRunSpans(run, calls.take(run.execution_id), hasContent)),
      ...replies.flatMap((reply) => buildReplySpan(reply, hasContent) ?? []),
    ];
  }
}

/** Returns the id of a reply that was sent or given up, or "". */
function readReply({ kind, data }: JournalRow): string {
  const { outbound_id = "", given_up } = JSON.parse(data) as { outbound_id?: string; given_up?: boolean };
  return kind === "message.undelivered" && given_up !== true ? "" : outbound_id;
}
