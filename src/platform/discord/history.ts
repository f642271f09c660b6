import { type Backoff, backoffMs } from "../../base/backoff.ts";
import { type Clock, sleep } from "../../base/clock.ts";
import { logger } from "../../base/log.ts";
import type { Heard, Incoming } from "../platform.ts";
import { readOrLeave } from "../receiving.ts";
import type { Channels } from "./channels.ts";
import { type DiscordClient, DiscordError } from "./client.ts";
import { type Message, messageOf } from "./message.ts";
import { channelOf } from "./send.ts";

const log = logger("discord");
// What was said longer ago has been forgotten by those who said it.
const HISTORY_AGE_MAX_MS = 24 * 60 * 60 * 1000;
const PAGE = 100;
// Of one channel.
const HISTORY_PAGES_MAX = 5;
// Of what was said at the same time, some may have come and some not; what comes again changes nothing.
const MARGIN_MS = 10_000n;
const RETRY: Backoff = { firstMs: 1_000, lastMs: 30_000 };
/** Ids of Discord begin with the time since then. */
const EPOCH_MS = 1_420_070_400_000n;

interface History {
  client: DiscordClient;
  channels: Channels;
  clock: Clock;
  heard: readonly Heard[];
  signal: AbortSignal;
}

/**
 * What was said since the last message that was heard, a day ago at most, in the order in which it was said. It asks until there is an
 * answer or the signal aborts.
 */
export async function saidMeanwhile(parts: History): Promise<Incoming[]> {
  const { heard, clock } = parts;
  const ids = heard.map(({ id }) => id).filter((id) => /^\d{1,20}$/.test(id)).map(BigInt);
  if (ids.length === 0) return [];
  // All are asked for what is newer than the newest: whatever is older was heard, or left alone.
  const oldest = (BigInt(clock.now() - HISTORY_AGE_MAX_MS) - EPOCH_MS) << 22n;
  const newest = ids.reduce((a, b) => a > b ? a : b);
  const known = newest - (MARGIN_MS << 22n);
  const after = known > oldest ? known : oldest;
  const all: Incoming[] = [];
  for (const channel of new Set(heard.map((place) => place.thread || place.chat))) {
    all.push(...await patiently(parts, () => saidIn(parts, channel, after)));
  }
  return all.sort((a, b) => BigInt(a.id) < BigInt(b.id) ? -1 : 1);
}

async function saidIn(
  { client, channels, signal }: History,
  channel: string,
  after: bigint,
): Promise<Incoming[]> {
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
    }
    for (const { id } of messages) if (BigInt(id) > last) last = BigInt(id);
    if (messages.length < PAGE) break;
  }
  return said;
}

async function patiently(
  { clock, signal }: History,
  read: () => Promise<Incoming[]>,
): Promise<Incoming[]> {
  for (let failures = 0; !signal.aborted;) {
    try {
      return await read();
    } catch (error) {
      const { status, retryAfterMs } = error instanceof DiscordError
        ? error
        : { status: 0, retryAfterMs: null };
      // A channel that we may not read any more; and a key that does not count is the gateway's to say.
      if (status >= 400 && status < 500 && status !== 429) return [];
      log.info("The history of Discord is not here yet: {error}", { error });
      await sleep(clock, retryAfterMs ?? backoffMs(RETRY, ++failures), signal);
    }
  }
  return [];
}
