import { type Backoff, backoffMs } from "../base/backoff.ts";
import type { Clock } from "../base/clock.ts";

const RETRY: Backoff = { firstMs: 1_000, lastMs: 300_000 };

interface Hold {
  until: number;
  strikes: number;
}

/** Platforms and chats that are left alone for a while, because they are away or said that it was too much (contract 10.3). */
export class Holds {
  readonly #clock: Clock;
  readonly #held = new Map<string, Hold>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Leaves a platform alone, or one chat of it; answers until when, Unix ms. What the platform said counts before our own pause. */
  hold(platform: string, chat: string | undefined, retryAfterMs: number | null): number {
    const key = keyOf(platform, chat);
    const strikes = (this.#held.get(key)?.strikes ?? 0) + 1;
    const until = this.#clock.now() + (retryAfterMs ?? backoffMs(RETRY, strikes));
    this.#held.set(key, { until, strikes });
    return until;
  }

  /** Until when, or null when it may be tried. */
  until(platform: string, chat?: string): number | null {
    const now = this.#clock.now();
    const held = [keyOf(platform), ...(chat === undefined ? [] : [keyOf(platform, chat)])]
      .map((key) => this.#held.get(key)?.until ?? 0);
    const until = Math.max(...held);
    return until > now ? until : null;
  }

  /** Something arrived there. */
  clear(platform: string, chat: string): void {
    this.#held.delete(keyOf(platform));
    this.#held.delete(keyOf(platform, chat));
  }
}

function keyOf(platform: string, chat?: string): string {
  return chat === undefined ? platform : `${platform}:${chat}`;
}
