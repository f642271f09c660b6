import { type Backoff, backoffMs } from "../../base/backoff.ts";
import { type Clock, sleep } from "../../base/clock.ts";
import { logger } from "../../base/log.ts";
import type { Gap, Heard, Incoming } from "../platform.ts";
import { readOrLeave } from "../receive_guard.ts";
import type { Channels, Server } from "./channels.ts";
import { type DiscordClient, DiscordError } from "./client.ts";
import { type Message, messageOf } from "./message.ts";
import { channelOf } from "./send.ts";

const log = logger("discord");
// What was said longer ago has been forgotten by those who said it.
const HISTORY_AGE_MAX_MS = 24 * 60 * 60 * 1000;
const PAGE = 100;
// Of one channel.
const HISTORY_PAGES_MAX = 5;
// Of one gap, beside the conversations that are known.
const HISTORY_CHANNELS_MAX = 200;
// Of what was said at the same time, some may have come and some not; what comes again changes nothing.
const MARGIN_MS = 10_000n;
const RETRY: Backoff = { firstMs: 1_000, lastMs: 30_000 };
// Of one channel, half a minute when Discord does not say how long: what is said now waits for it.
const TRIES = 6;
// What Discord itself asks to wait is no try; so much of it in one gap, and the rest is left out.
const LIMITED_MS = 3_600_000;
/** The conversations that are known, beside the ids of servers. */
const KNOWN = "";
/** Ids of Discord begin with the time since then. */
const EPOCH_MS = 1_420_070_400_000n;

interface Services {
  client: DiscordClient;
  channels: Channels;
  clock: Clock;
  gap: Gap | undefined;
}

/**
 * What was said while nobody listened. Each channel is read once for each gap, and a gap is over when all servers are there whose
 * messages may be in it: until then another start begins where this one did.
 */
export class History {
  readonly #parts: Services;
  readonly #read = new Set<string>();
  /** Whose part of the gap is not stored yet: servers, and KNOWN. */
  readonly #missing = new Set<string>();
  #isOpen = false;
  /** How long the limits of Discord have kept the history of this gap waiting. */
  #limitedMs = 0;
  /** The newest message that was heard before the gap; null when nothing ever was. */
  #newest: bigint | null = null;

  constructor(parts: Services) {
    this.#parts = parts;
  }

  /** A session begins anew: answers what was said since in the conversations that are known. Throws when the signal aborts. */
  async begin(
    heard: readonly Heard[],
    servers: readonly { id: string }[],
    signal: AbortSignal,
  ): Promise<Incoming[]> {
    const ids = heard.map(({ id }) => id).filter(isId).map(BigInt);
    const newest = ids.length === 0 ? null : ids.reduce((a, b) => a > b ? a : b);
    const open = await this.#parts.gap?.find() ?? "";
    this.#newest = newest !== null && isId(open) ? BigInt(open) : newest;
    if (this.#newest !== null) await this.#parts.gap?.save(String(this.#newest));
    this.#isOpen = this.#newest !== null;
    this.#missing.clear();
    for (const id of [KNOWN, ...servers.map(({ id }) => id)]) this.#missing.add(id);
    this.#read.clear();
    this.#limitedMs = 0;
    return await this.#since(heard.map(({ thread, chat }) => thread || chat), this.#after(), signal);
  }

  /**
   * A server is there: answers what was said since in its channels and threads in which something was said, and never what was said
   * before we came. Throws when the signal aborts.
   */
  async open(
    { channels = [], threads = [], joined_at = "" }: Server,
    signal: AbortSignal,
  ): Promise<Incoming[]> {
    const known = this.#after();
    if (known === null) return [];
    const joined = idAt(Date.parse(joined_at) || 0);
    const after = joined > known ? joined : known;
    const spoken = [...channels, ...threads].filter(({ last_message_id: last }) =>
      typeof last === "string" && isId(last) && BigInt(last) > after
    );
    const room = Math.max(0, HISTORY_CHANNELS_MAX - this.#read.size);
    return await this.#since(spoken.slice(0, room).map(({ id }) => id), after, signal);
  }

  /** What begin() answered, or open() of this server, is stored. */
  async told({ id = KNOWN }: Server = {}): Promise<void> {
    this.#missing.delete(id);
    if (!this.#isOpen || this.#missing.size > 0) return;
    await this.#parts.gap?.save("");
    this.#isOpen = false;
  }

  /** What was said in these channels after an id, in the order in which it was said. Throws when the signal aborts. */
  async #since(ids: readonly string[], after: bigint | null, signal: AbortSignal): Promise<Incoming[]> {
    if (after === null) return [];
    const all: Incoming[] = [];
    for (const id of new Set(ids)) {
      if (this.#read.has(id)) continue;
      all.push(...await this.#saidIn(id, after, signal));
      this.#read.add(id);
    }
    return all.sort((a, b) => BigInt(a.id) < BigInt(b.id) ? -1 : 1);
  }

  /** The newest message that was heard, a day ago at most. */
  #after(): bigint | null {
    if (this.#newest === null) return null;
    const oldest = idAt(this.#parts.clock.now() - HISTORY_AGE_MAX_MS);
    const known = this.#newest - (MARGIN_MS << 22n);
    return known > oldest ? known : oldest;
  }

  /** What can be read of a channel: what does not come in some tries is left out with a warning, and what came before it stays. */
  async #saidIn(channel: string, after: bigint, signal: AbortSignal): Promise<Incoming[]> {
    const said: Incoming[] = [];
    let last = after;
    for (let page = 0, failures = 0; page < HISTORY_PAGES_MAX;) {
      try {
        const found = await this.#page(channel, last, signal);
        said.push(...found.said);
        if (!found.isFull) break;
        last = found.last;
        page++;
      } catch (error) {
        signal.throwIfAborted();
        if (!isLimited(error)) failures++;
        if (!await this.#mayTryAgain(channel, error, failures, signal)) break;
      }
    }
    return said;
  }

  async #page(channel: string, after: bigint, signal: AbortSignal) {
    const { client, channels } = this.#parts;
    const where = await channels.find(channel, signal);
    if (where === null) return { said: [], last: after, isFull: false };
    const path = `${channelOf(where)}/messages?limit=${PAGE}&after=${after}`;
    const messages = await client.call<Message[]>("GET", path, { signal });
    const said: Incoming[] = [];
    let last = after;
    for (const message of messages.filter(({ id }) => isId(id))) {
      const incoming = readOrLeave("Discord", () => messageOf(message, where, channels.me));
      if (incoming !== null) said.push(incoming);
      if (BigInt(message.id) > last) last = BigInt(message.id);
    }
    return { said, last, isFull: messages.length >= PAGE };
  }

  /** Waits for the next try of a channel; false when there is none. Throws when the signal aborts. */
  async #mayTryAgain(
    channel: string,
    error: unknown,
    failures: number,
    signal: AbortSignal,
  ): Promise<boolean> {
    const status = error instanceof DiscordError ? error.status : 0;
    // A channel that we may not read any more; and a key that does not count is the gateway's to say.
    if (status >= 400 && status < 500 && status !== 429) return false;
    const waitMs = isLimited(error)
      ? Math.max(error.retryAfterMs, RETRY.firstMs)
      : backoffMs(RETRY, failures);
    if (isLimited(error)) this.#limitedMs += waitMs;
    if (failures === TRIES || this.#limitedMs > LIMITED_MS) {
      log.warning("A part of the history of {channel} of Discord is left out: {error}", { channel, error });
      return false;
    }
    log.info("The history of Discord is not here yet: {error}", { error });
    await sleep(this.#parts.clock, waitMs, signal);
    signal.throwIfAborted();
    return true;
  }
}

function isId(text: string): boolean {
  return /^\d{1,20}$/.test(text);
}

/** The first id of a time, Unix ms. */
function idAt(time: number): bigint {
  return (BigInt(time) - EPOCH_MS) << 22n;
}

// Until such a limit is over, the client answers by itself.
function isLimited(error: unknown): error is DiscordError & { retryAfterMs: number } {
  return error instanceof DiscordError && error.status === 429 && error.retryAfterMs !== null;
}
