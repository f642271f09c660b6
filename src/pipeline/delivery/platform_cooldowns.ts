import { type Backoff, backoffMs } from "../../base/backoff.ts";
import type { Clock } from "../../base/clock.ts";
import { LONGEST_PAUSE_MS } from "../../platform/retry_after.ts";

const RETRY: Backoff = { firstMs: 1_000, lastMs: 300_000 };

interface Hold {
  /** Monotonic ms: a clock that is set back must not hold a platform for longer. */
  endsAt: number;
  strikes: number;
}

/** Platforms and chats that are left alone for a while, because they are away or said that it was too much (contract 10.3). */
export class Holds {
  readonly #clock: Clock;
  readonly #held = new Map<string, Hold>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Leaves a platform alone, or one chat of it, for a day at most; answers until when, Unix ms. What the platform said counts before our
   * own pause.
   */
  hold(platform: string, chat: string | undefined, retryAfterMs: number | null): number {
    const key = keyOf(platform, chat);
    const now = this.#clock.monotonic();
    const { endsAt: before, strikes: earlier } = this.#held.get(key) ?? { endsAt: now, strikes: 0 };
    // What fails while a hold is on was sent before it: the same trouble, and not one more.
    const strikes = before > now ? earlier : earlier + 1;
    const asked = Math.ceil(retryAfterMs ?? backoffMs(RETRY, strikes));
    const ms = Math.min(Math.max(asked, RETRY.firstMs), LONGEST_PAUSE_MS);
    const endsAt = Math.max(before, now + ms);
    this.#held.set(key, { endsAt, strikes });
    return this.#clock.now() + Math.ceil(endsAt - now);
  }

  /** Until when, Unix ms, or null when it may be tried. */
  until(platform: string, chat?: string): number | null {
    const held = [keyOf(platform), ...(chat === undefined ? [] : [keyOf(platform, chat)])]
      .map((key) => this.#held.get(key)?.endsAt ?? 0);
    const left = Math.max(...held) - this.#clock.monotonic();
    // Whole ms: it is stored.
    return left > 0 ? this.#clock.now() + Math.ceil(left) : null;
  }

  /** Something arrived there: a hold that is over counts no more. One that goes on stays, as what arrived was sent before it. */
  clear(platform: string, chat: string): void {
    const now = this.#clock.monotonic();
    for (const key of [keyOf(platform), keyOf(platform, chat)]) {
      if ((this.#held.get(key)?.endsAt ?? now) <= now) this.#held.delete(key);
    }
  }
}

function keyOf(platform: string, chat?: string): string {
  return chat === undefined ? platform : `${platform}:${chat}`;
}
