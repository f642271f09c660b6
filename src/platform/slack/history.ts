import { type Clock, sleep } from "../../base/clock.ts";
import { createLogger } from "../../base/log.ts";
import type { IncomingMessage, LastMessage } from "../platform.ts";
import { parseOrDrop } from "../receive_guard.ts";
import { type SlackClient, SlackError } from "./client.ts";
import { type Event, parseMessage } from "./message.ts";

const log = createLogger("slack");
const HISTORY_AGE_MAX_MS = 24 * 60 * 60 * 1000;
const PAGE = 100;
// Limit of the messages that are read from one channel or thread.
const HISTORY_PAGES_MAX = 5;
// Slack allows some apps one request per minute.
const PAUSE_MS = 60_000;
const TRIES = 5;

interface HistoryDeps {
  client: SlackClient;
  clock: Clock;
  heard: readonly LastMessage[];
  /** Last message before the gap, over all conversations. */
  heardUpTo: string;
  botId: string;
  signal: AbortSignal;
}

interface Page {
  messages: Event[];
  has_more?: boolean;
  response_metadata?: { next_cursor?: string };
}

/** A channel or thread, and the message after which to read it. */
interface Place {
  channel: string;
  thread: string;
  after: string;
}

/**
 * Reads the missed messages of the known conversations, at most a day old, one conversation at a time and each in order. A message that was
 * already stored changes nothing.
 */
export async function* readMissedMessages(
  deps: HistoryDeps,
): AsyncGenerator<{ incoming: IncomingMessage; event: Event }> {
  const oldest = String((deps.clock.now() - HISTORY_AGE_MAX_MS) / 1000);
  for (const place of listPlaces(deps, oldest)) {
    const said = await readPlace(deps, place);
    // The newest pages come first. If only they were stored, the older messages would never be read.
    if (deps.signal.aborted) return;
    said.sort((a, b) => (a.ts ?? "") < (b.ts ?? "") ? -1 : 1);
    for (const one of said) {
      const event = { ...one, type: "message", channel: place.channel };
      const incoming = parseOrDrop("Slack", () => parseMessage(event, deps.botId));
      if (incoming !== null && incoming.id > place.after) yield { incoming, event };
    }
  }
}

/** Lists channels and threads. The history of a channel does not contain its threads. */
function listPlaces({ heard, heardUpTo }: HistoryDeps, oldest: string): Place[] {
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

/** Reads a place. After too many failures it logs a warning and returns what it has. */
async function readPlace(deps: HistoryDeps, place: Place): Promise<Event[]> {
  const said: Event[] = [];
  let cursor = "";
  for (let page = 0; page < HISTORY_PAGES_MAX; page++) {
    const found = await retryPage(deps, () => readPage(deps, place, cursor));
    if (found === null) break;
    said.push(...found.messages);
    cursor = found.response_metadata?.next_cursor ?? "";
    if (found.has_more !== true || cursor === "") break;
  }
  return said;
}

async function readPage({ client, signal }: HistoryDeps, place: Place, cursor: string): Promise<Page> {
  const { channel, thread, after } = place;
  const method = thread === "" ? "conversations.history" : "conversations.replies";
  const where = thread === "" ? { channel } : { channel, ts: thread };
  const more = cursor === "" ? {} : { cursor };
  const page = await client.call<Page>(method, { ...where, oldest: after, limit: PAGE, ...more }, signal);
  if (!Array.isArray(page.messages)) throw new Error("Slack answered no messages");
  return page;
}

/** Retries a page. Returns null after too many failures. */
async function retryPage({ clock, signal }: HistoryDeps, read: () => Promise<Page>): Promise<Page | null> {
  for (let tries = 1; !signal.aborted; tries++) {
    try {
      return await read();
    } catch (error) {
      // The app may not read the channel, or the thread is deleted.
      if (error instanceof SlackError && error.isFinal) return null;
      if (tries === TRIES) {
        log.warning("Cannot read all of the history of Slack: {error}", { error });
        return null;
      }
      log.info("Cannot read the history of Slack yet: {error}", { error });
      const asked = error instanceof SlackError ? error.retryAfterMs : null;
      await sleep(clock, asked ?? PAUSE_MS, signal);
    }
  }
  return null;
}
