import { type Backoff, backoffMs } from "../../base/backoff.ts";
import { type Clock, sleep } from "../../base/clock.ts";
import { logger } from "../../base/log.ts";
import type { Heard, Incoming } from "../platform.ts";
import { readOrLeave } from "../receiving.ts";
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
/** Ids of Discord begin with the time since then. */
const EPOCH_MS = 1_420_070_400_000n;

interface Parts {
  client: DiscordClient;
  channels: Channels;
  clock: Clock;
}

/** What was said while nobody listened. Each channel is read once for each gap. */
export class History {
  readonly #parts: Parts;
  readonly #read = new Set<string>();
  /** The newest message that was heard before the gap; null when nothing ever was. */
  #newest: bigint | null = null;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** A session begins anew: answers what was said since in the conversations that are known. Throws when the signal aborts. */
  async begin(heard: readonly Heard[], signal: AbortSignal): Promise<Incoming[]> {
    const ids = heard.map(({ id }) => id).filter((id) => /^\d{1,20}$/.test(id)).map(BigInt);
    this.#newest = ids.length === 0 ? null : ids.reduce((a, b) => a > b ? a : b);
    this.#read.clear();
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
      typeof last === "string" && BigInt(last) > after
    );
    const room = Math.max(0, HISTORY_CHANNELS_MAX - this.#read.size);
    return await this.#since(spoken.slice(0, room).map(({ id }) => id), after, signal);
  }

  /**
   * What was said in these channels after an id, in the order in which it was said. It asks until there is an answer; throws when the
   * signal aborts.
   */
  async #since(ids: readonly string[], after: bigint | null, signal: AbortSignal): Promise<Incoming[]> {
    if (after === null) return [];
    const all: Incoming[] = [];
    for (const id of new Set(ids)) {
      if (this.#read.has(id)) continue;
      all.push(...await this.#patiently(() => this.#saidIn(id, after, signal), signal));
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

  async #saidIn(channel: string, after: bigint, signal: AbortSignal): Promise<Incoming[]> {
    const { client, channels } = this.#parts;
    const where = await channels.find(channel, signal);
    if (where === null) return [];
    const said: Incoming[] = [];
    let last = after;
    for (let page = 0; page < HISTORY_PAGES_MAX; page++) {
      const path = `${channelOf(where)}/messages?limit=${PAGE}&after=${last}`;
      const messages = await client.call<Message[]>("GET", path, { signal });
      for (const message of messages) {
        const incoming = readOrLeave("Discord", () => messageOf(message, where, channels.me));
        if (incoming !== null) said.push(incoming);
        if (BigInt(message.id) > last) last = BigInt(message.id);
      }
      if (messages.length < PAGE) break;
    }
    return said;
  }

  async #patiently(read: () => Promise<Incoming[]>, signal: AbortSignal): Promise<Incoming[]> {
    for (let failures = 0;;) {
      signal.throwIfAborted();
      try {
        return await read();
      } catch (error) {
        const { status, retryAfterMs } = error instanceof DiscordError
          ? error
          : { status: 0, retryAfterMs: null };
        // A channel that we may not read any more; and a key that does not count is the gateway's to say.
        if (status >= 400 && status < 500 && status !== 429) return [];
        log.info("The history of Discord is not here yet: {error}", { error });
        await sleep(this.#parts.clock, retryAfterMs ?? backoffMs(RETRY, ++failures), signal);
      }
    }
  }
}

/** The first id of a time, Unix ms. */
function idAt(time: number): bigint {
  return (BigInt(time) - EPOCH_MS) << 22n;
}
