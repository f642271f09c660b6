import { type Backoff, backoffMs } from "../../base/backoff.ts";
import { type Clock, sleep } from "../../base/clock.ts";
import { createLogger } from "../../base/log.ts";
import type { Gap, IncomingMessage, LastMessage } from "../platform.ts";
import { parseOrDrop } from "../receive_guard.ts";
import type { Channels, Server } from "./channels.ts";
import { type DiscordClient, DiscordError } from "./client.ts";
import { type Message, parseMessage } from "./message.ts";
import { buildChannelPath } from "./send.ts";

const log = createLogger("discord");
const HISTORY_AGE_MAX_MS = 24 * 60 * 60 * 1000;
const PAGE = 100;
// Limit of the messages that are read from one channel.
const HISTORY_PAGES_MAX = 5;
// Limit for one gap, in addition to the known conversations.
const HISTORY_CHANNELS_MAX = 200;
// Starts to read this long before the newest message: Discord can deliver messages of the same moment in any order.
const MARGIN_MS = 10_000n;
const RETRY: Backoff = { firstMs: 1_000, lastMs: 30_000 };
// Limit for one channel. All tries take half a minute, since new messages wait for them.
const TRIES = 6;
// Limit for the sum of the pauses that Discord asks for in one gap. The service skips the rest of the history.
const LIMITED_MS = 3_600_000;
/** Represents the known conversations in a set of server ids. */
const KNOWN = "";
/** An id of Discord starts with the ms since this time. */
const EPOCH_MS = 1_420_070_400_000n;

interface Services {
  client: DiscordClient;
  channels: Channels;
  clock: Clock;
  gap: Gap | undefined;
}

/**
 * Reads the messages of a gap, a time without a connection. Reads each channel once per gap. A gap ends when Discord has announced
 * every server. A restart before its end reads the same gap again.
 */
export class History {
  readonly #parts: Services;
  readonly #read = new Set<string>();
  /** Servers, and KNOWN, whose part of the gap is not stored yet. */
  readonly #openParts = new Set<string>();
  #isOpen = false;
  #limitedMs = 0;
  /** Newest message before the gap, or null if the bot never received one. */
  #lastHeard: bigint | null = null;

  constructor(parts: Services) {
    this.#parts = parts;
  }

  /** Starts a gap. Returns the missed messages of the known conversations. Throws when the signal aborts. */
  async startGap(
    heard: readonly LastMessage[],
    servers: readonly { id: string }[],
    signal: AbortSignal,
  ): Promise<IncomingMessage[]> {
    const ids = heard.map(({ id }) => id).filter(isId).map(BigInt);
    const newest = ids.length === 0 ? null : ids.reduce((a, b) => a > b ? a : b);
    const open = await this.#parts.gap?.find() ?? "";
    this.#lastHeard = newest !== null && isId(open) ? BigInt(open) : newest;
    if (this.#lastHeard !== null) await this.#parts.gap?.save(String(this.#lastHeard));
    this.#isOpen = this.#lastHeard !== null;
    this.#openParts.clear();
    for (const id of [KNOWN, ...servers.map(({ id }) => id)]) this.#openParts.add(id);
    this.#read.clear();
    this.#limitedMs = 0;
    return await this.#readSince(heard.map(({ thread, chat }) => thread || chat), this.#findStart(), signal);
  }

  /**
   * Returns the missed messages of a server that Discord has announced, but none from before the bot joined. Throws when the signal
   * aborts.
   */
  async readServer(
    { channels = [], threads = [], joined_at = "" }: Server,
    signal: AbortSignal,
  ): Promise<IncomingMessage[]> {
    const known = this.#findStart();
    if (known === null) return [];
    const joined = findIdAt(Date.parse(joined_at) || 0);
    const after = joined > known ? joined : known;
    const spoken = [...channels, ...threads].filter(({ last_message_id: last }) =>
      typeof last === "string" && isId(last) && BigInt(last) > after
    );
    const room = Math.max(0, HISTORY_CHANNELS_MAX - this.#read.size);
    return await this.#readSince(spoken.slice(0, room).map(({ id }) => id), after, signal);
  }

  /** Closes a part of the gap after its messages are stored. */
  async markStored({ id = KNOWN }: Server = {}): Promise<void> {
    this.#openParts.delete(id);
    if (!this.#isOpen || this.#openParts.size > 0) return;
    await this.#parts.gap?.save("");
    this.#isOpen = false;
  }

  /** Reads these channels after an id, in order. Throws when the signal aborts. */
  async #readSince(
    ids: readonly string[],
    after: bigint | null,
    signal: AbortSignal,
  ): Promise<IncomingMessage[]> {
    if (after === null) return [];
    const all: IncomingMessage[] = [];
    for (const id of new Set(ids)) {
      if (this.#read.has(id)) continue;
      all.push(...await this.#readChannel(id, after, signal));
      this.#read.add(id);
    }
    return all.sort((a, b) => BigInt(a.id) < BigInt(b.id) ? -1 : 1);
  }

  /** Finds the id after which to read, at most a day old. */
  #findStart(): bigint | null {
    if (this.#lastHeard === null) return null;
    const oldest = findIdAt(this.#parts.clock.now() - HISTORY_AGE_MAX_MS);
    const known = this.#lastHeard - (MARGIN_MS << 22n);
    return known > oldest ? known : oldest;
  }

  /** Reads a channel. After too many failures it logs a warning and returns what it has. */
  async #readChannel(channel: string, after: bigint, signal: AbortSignal): Promise<IncomingMessage[]> {
    const said: IncomingMessage[] = [];
    let last = after;
    for (let page = 0, failures = 0; page < HISTORY_PAGES_MAX;) {
      try {
        const found = await this.#readPage(channel, last, signal);
        said.push(...found.said);
        if (!found.isFull) break;
        last = found.last;
        page++;
      } catch (error) {
        signal.throwIfAborted();
        if (!isLimited(error)) failures++;
        if (!await this.#waitForRetry(channel, error, failures, signal)) break;
      }
    }
    return said;
  }

  async #readPage(channel: string, after: bigint, signal: AbortSignal) {
    const { client, channels } = this.#parts;
    const where = await channels.find(channel, signal);
    if (where === null) return { said: [], last: after, isFull: false };
    const path = `${buildChannelPath(where)}/messages?limit=${PAGE}&after=${after}`;
    const messages = await client.call<Message[]>("GET", path, { signal });
    const said: IncomingMessage[] = [];
    let last = after;
    for (const message of messages.filter(({ id }) => isId(id))) {
      const incoming = parseOrDrop("Discord", () => parseMessage(message, where, channels.me));
      if (incoming !== null) said.push(incoming);
      if (BigInt(message.id) > last) last = BigInt(message.id);
    }
    return { said, last, isFull: messages.length >= PAGE };
  }

  /** Waits for the next try. Returns false when there is none. Throws when the signal aborts. */
  async #waitForRetry(
    channel: string,
    error: unknown,
    failures: number,
    signal: AbortSignal,
  ): Promise<boolean> {
    const status = error instanceof DiscordError ? error.status : 0;
    // The bot may not read the channel. The gateway reports an invalid key.
    if (status >= 400 && status < 500 && status !== 429) return false;
    const waitMs = isLimited(error)
      ? Math.max(error.retryAfterMs, RETRY.firstMs)
      : backoffMs(RETRY, failures);
    if (isLimited(error)) this.#limitedMs += waitMs;
    if (failures === TRIES || this.#limitedMs > LIMITED_MS) {
      log.warning("Cannot read all of the history of {channel} of Discord: {error}", { channel, error });
      return false;
    }
    log.info("Cannot read the history of Discord yet: {error}", { error });
    await sleep(this.#parts.clock, waitMs, signal);
    signal.throwIfAborted();
    return true;
  }
}

function isId(text: string): boolean {
  return /^\d{1,20}$/.test(text);
}

/** Finds the first id of a time in Unix ms. */
function findIdAt(time: number): bigint {
  return (BigInt(time) - EPOCH_MS) << 22n;
}

// Until a limit ends, the client throws these errors without a request.
function isLimited(error: unknown): error is DiscordError & { retryAfterMs: number } {
  return error instanceof DiscordError && error.status === 429 && error.retryAfterMs !== null;
}
