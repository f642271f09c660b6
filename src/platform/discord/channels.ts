import { LRUCache } from "lru-cache";
import { type DiscordClient, DiscordError } from "./client.ts";
import type { Me, Where } from "./message.ts";

// Channels and threads whose place is known; a server has 500 channels and 1,000 open threads at most.
const CHANNELS_KNOWN_MAX = 20_000;
const DIRECT = 1;
const THREADS = [10, 11, 12];
const NOT_THERE = [403, 404];

/** A channel as Discord tells of it. */
export interface Channel {
  id: string;
  type: number;
  parent_id?: string | null;
  last_message_id?: string | null;
}

/** What Discord tells of a server when it is there, and what changes in it later. */
export interface Server {
  id?: string;
  channels?: Channel[];
  threads?: Channel[];
  roles?: { id: string; tags?: { bot_id?: string } }[];
  /** When we came there. */
  joined_at?: string;
}

/** Which channel is a thread of which, a direct chat, or neither; and who we are there. */
export class Channels {
  readonly #client: DiscordClient;
  readonly #known = new LRUCache<string, Where>({ max: CHANNELS_KNOWN_MAX });
  readonly #roles = new Set<string>();
  #id = "";

  constructor(client: DiscordClient) {
    this.#client = client;
  }

  /** Who we are, as Discord says when a session begins. */
  become(id: string): void {
    this.#id = id;
  }

  get me(): Me {
    return { id: this.#id, roles: this.#roles };
  }

  learn({ channels = [], threads = [], roles = [] }: Server): void {
    for (const channel of [...channels, ...threads]) this.#known.set(channel.id, whereOf(channel));
    for (const { id, tags } of roles) if (tags?.bot_id === this.#id) this.#roles.add(id);
  }

  /** Where a channel is; null when it is not there for us. Throws as a call of the client does. */
  async find(id: string, signal: AbortSignal): Promise<Where | null> {
    const known = this.#known.get(id);
    if (known !== undefined) return known;
    try {
      this.learn({
        channels: [
          await this.#client.call<Channel>("GET", `/channels/${encodeURIComponent(id)}`, { signal }),
        ],
      });
    } catch (error) {
      if (error instanceof DiscordError && NOT_THERE.includes(error.status)) return null;
      throw error;
    }
    return this.#known.get(id) ?? null;
  }
}

function whereOf({ id, type, parent_id }: Channel): Where {
  const isThread = THREADS.includes(type) && typeof parent_id === "string";
  return { chat: isThread ? parent_id : id, thread: isThread ? id : "", isDirect: type === DIRECT };
}
