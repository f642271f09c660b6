import { type Clock, sleep } from "../../base/clock.ts";
import { logger } from "../../base/log.ts";
import type { Heard, Incoming } from "../platform.ts";
import { readOrLeave } from "../receiving.ts";
import { type SlackClient, SlackError } from "./client.ts";
import { type Event, messageOf } from "./message.ts";

const log = logger("slack");
// What was said longer ago has been forgotten by those who said it.
const HISTORY_AGE_MAX_MS = 24 * 60 * 60 * 1000;
const PAGE = 100;
// Of one channel or thread.
const HISTORY_PAGES_MAX = 5;
// Slack lets some apps ask once in a minute.
const PAUSE_MS = 60_000;
const TRIES = 5;

interface History {
  client: SlackClient;
  clock: Clock;
  heard: readonly Heard[];
  botId: string;
  signal: AbortSignal;
}

interface Page {
  messages: Event[];
  has_more?: boolean;
  response_metadata?: { next_cursor?: string };
}

/** A channel, or a thread in one, and the message after which it is read. */
interface Place {
  channel: string;
  thread: string;
  after: string;
}

/**
 * What was said in the known conversations since the last message that was heard there, a day ago at most, place by place and in
 * the order in which it was said (contract 10.1). What comes twice changes nothing.
 */
export async function* saidMeanwhile(parts: History): AsyncGenerator<Incoming> {
  const oldest = String((parts.clock.now() - HISTORY_AGE_MAX_MS) / 1000);
  for (const place of placesOf(parts.heard, oldest)) {
    const said: Event[] = await patiently(parts, () => saidIn(parts, place));
    said.sort((a, b) => (a.ts ?? "") < (b.ts ?? "") ? -1 : 1);
    for (const event of said) {
      const incoming = readOrLeave(
        "Slack",
        () => messageOf({ ...event, type: "message", channel: place.channel }, parts.botId),
      );
      if (incoming !== null && incoming.id > place.after) yield incoming;
    }
  }
}

/** Every channel from what was heard last in it, and every thread, which the history of its channel does not have. */
function placesOf(heard: readonly Heard[], oldest: string): Place[] {
  const places = new Map<string, Place>();
  for (const { chat: channel, thread, id } of heard) {
    for (const of of thread === "" ? [""] : ["", thread]) {
      const key = `${channel} ${of}`;
      const after = places.get(key)?.after ?? oldest;
      places.set(key, { channel, thread: of, after: id > after ? id : after });
    }
  }
  return [...places.values()];
}

async function saidIn({ client, signal }: History, { channel, thread, after }: Place): Promise<Event[]> {
  const method = thread === "" ? "conversations.history" : "conversations.replies";
  const where = thread === "" ? { channel } : { channel, ts: thread };
  const said: Event[] = [];
  let cursor = "";
  for (let page = 0; page < HISTORY_PAGES_MAX; page++) {
    const more = cursor === "" ? {} : { cursor };
    const found = await client.call<Page>(method, { ...where, oldest: after, limit: PAGE, ...more }, signal);
    said.push(...found.messages);
    cursor = found.response_metadata?.next_cursor ?? "";
    if (found.has_more !== true || cursor === "") break;
  }
  return said;
}

async function patiently(
  { clock, signal }: History,
  read: () => Promise<Event[]>,
): Promise<Event[]> {
  for (let tries = 1; tries <= TRIES && !signal.aborted; tries++) {
    try {
      return await read();
    } catch (error) {
      // A channel that we may not read any more, or a thread that is gone.
      if (error instanceof SlackError && error.isFinal) return [];
      log.info("The history of Slack is not here yet: {error}", { error });
      const asked = error instanceof SlackError ? error.retryAfterMs : null;
      await sleep(clock, asked ?? PAUSE_MS, signal);
    }
  }
  return [];
}
