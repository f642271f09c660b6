import { LRUCache } from "lru-cache";
import type { IncomingMessage } from "../platform.ts";

// Telegram delivers the messages of an album in one poll or in two.
const HELD_MS = 3_000;
// Limits for groups in which people send many albums without a mention.
const ALBUMS_KEPT = 100;
const MESSAGES_KEPT = 10;

interface HeldMessage {
  updateId: number;
  incoming: IncomingMessage;
  until: number;
}

/**
 * Keeps album messages of groups until another message of the same album mentions the bot. For some seconds the bot does not confirm a new
 * album message, so Telegram delivers it again after a restart.
 */
export class Albums {
  readonly #held = new LRUCache<string, HeldMessage[]>({ max: ALBUMS_KEPT });

  hold(updateId: number, incoming: IncomingMessage, now: number): void {
    const key = formatKey(incoming);
    const others = this.#held.get(key) ?? [];
    if (others.length >= MESSAGES_KEPT || others.some((one) => one.updateId === updateId)) return;
    this.#held.set(key, [...others, { updateId, incoming, until: now + HELD_MS }]);
  }

  /** Removes and returns the other messages of an album. */
  take(incoming: IncomingMessage): IncomingMessage[] {
    const key = formatKey(incoming);
    const held = this.#held.get(key) ?? [];
    this.#held.delete(key);
    return held.map((one) => one.incoming);
  }

  /** Returns the first update that the bot must not confirm yet. */
  findUnconfirmed(now: number): number | undefined {
    const fresh = [...this.#held.values()].flat().filter(({ until }) => until > now);
    return fresh.length === 0 ? undefined : Math.min(...fresh.map(({ updateId }) => updateId));
  }
}

function formatKey({ chat, album = "" }: IncomingMessage): string {
  return JSON.stringify([chat, album]);
}
