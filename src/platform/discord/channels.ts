import { LRUCache } from "lru-cache";
import { type DiscordClient, DiscordError } from "./client.ts";
import type { BotIdentity, ChannelPlace } from "./message.ts";

// A server has at most 500 channels and 1,000 open threads.
const CHANNELS_KNOWN_MAX = 20_000;
const DIRECT = 1;
const THREADS = [10, 11, 12];
const NOT_FOUND = [403, 404];

export interface Channel {
  id: string;
  type: number;
  parent_id?: string | null;
  last_message_id?: string | null;
}

/** A server, or a change of it. */
export interface Server {
  id?: string;
  channels?: Channel[];
  threads?: Channel[];
  roles?: { id: string; tags?: { bot_id?: string } }[];
  /** Time when the bot joined. */
  joined_at?: string;
}

/** Knows the parents of threads, the direct chats, and the id and roles of the bot. */
export class Channels {
  readonly #client: DiscordClient;
  readonly #known = new LRUCache<string, ChannelPlace>({ max: CHANNELS_KNOWN_MAX });
  readonly #roles = new Set<string>();
  #id = "";

  constructor(client: DiscordClient) {
    this.#client = client;
  }

  setBotId(id: string): void {
    this.#id = id;
  }

  get me(): BotIdentity {
    return { id: this.#id, roles: this.#roles };
  }

  store({ channels = [], threads = [], roles = [] }: Server): void {
    for (const channel of [...channels, ...threads]) this.#known.set(channel.id, locate(channel));
    for (const { id, tags } of roles) if (tags?.bot_id === this.#id) this.#roles.add(id);
  }

  /** Returns null for a channel that the bot can't see. Throws as a call of the client does. */
  async find(id: string, signal: AbortSignal): Promise<ChannelPlace | null> {
    const known = this.#known.get(id);
    if (known !== undefined) return known;
    try {
      this.store({
        channels: [
          await this.#client.call<Channel>("GET", `/channels/${encodeURIComponent(id)}`, { signal }),
        ],
      });
    } catch (error) {
      if (error instanceof DiscordError && NOT_FOUND.includes(error.status)) return null;
      throw error;
    }
    return this.#known.get(id) ?? null;
  }
}

function locate({ id, type, parent_id }: Channel): ChannelPlace {
  const isThread = THREADS.includes(type) && typeof parent_id === "string";
  return { chat: isThread ? parent_id : id, thread: isThread ? id : "", isDirect: type === DIRECT };
}
