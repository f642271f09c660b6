import { type Clock, sleep } from "../../base/clock.ts";
import { logger } from "../../base/log.ts";
import type { Heard, Incoming } from "../platform.ts";
import { readOrLeave } from "../receive_guard.ts";
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
// Of one page.
const TRIES = 5;

interface History {
  client: SlackClient;
  clock: Clock;
  heard: readonly Heard[];
  /** Up to which message somebody listened, in all conversations. */
  heardUpTo: string;
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
  for (const place of placesOf(parts, oldest)) {
    const said = await saidIn(parts, place);
    // The newest pages come first: with them alone, what is older would never be asked for again.
    if (parts.signal.aborted) return;
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
function placesOf({ heard, heardUpTo }: History, oldest: string): Place[] {
  const places = new Map<string, Place>();
  for (const { chat: channel, thread, id: last } of heard) {
    const id = last < heardUpTo ? last : heardUpTo;
    for (const of of thread === "" ? [""] : ["", thread]) {
      const key = `${channel} ${of}`;
      const after = places.get(key)?.after ?? oldest;
      places.set(key, { channel, thread: of, after: id > after ? id : after });
    }
  }
  return [...places.values()];
}

/** What can be read of a place. A page that does not come in some tries ends it with a warning, and what came before it stays. */
async function saidIn(parts: History, place: Place): Promise<Event[]> {
  const said: Event[] = [];
  let cursor = "";
  for (let page = 0; page < HISTORY_PAGES_MAX; page++) {
    const found = await patiently(parts, () => pageOf(parts, place, cursor));
    if (found === null) break;
    said.push(...found.messages);
    cursor = found.response_metadata?.next_cursor ?? "";
    if (found.has_more !== true || cursor === "") break;
  }
  return said;
}

async function pageOf({ client, signal }: History, place: Place, cursor: string): Promise<Page> {
  const { channel, thread, after } = place;
  const method = thread === "" ? "conversations.history" : "conversations.replies";
  const where = thread === "" ? { channel } : { channel, ts: thread };
  const more = cursor === "" ? {} : { cursor };
  const page = await client.call<Page>(method, { ...where, oldest: after, limit: PAGE, ...more }, signal);
  if (!Array.isArray(page.messages)) throw new Error("Slack answered no messages");
  return page;
}

/** A page, tried some times. null: it is not to be had. */
async function patiently({ clock, signal }: History, read: () => Promise<Page>): Promise<Page | null> {
  for (let tries = 1; !signal.aborted; tries++) {
    try {
      return await read();
    } catch (error) {
      // A channel that we may not read any more, or a thread that is gone.
      if (error instanceof SlackError && error.isFinal) return null;
      if (tries === TRIES) {
        log.warning("A part of the history of Slack is left out: {error}", { error });
        return null;
      }
      log.info("The history of Slack is not here yet: {error}", { error });
      const asked = error instanceof SlackError ? error.retryAfterMs : null;
      await sleep(clock, asked ?? PAUSE_MS, signal);
    }
  }
  return null;
}
