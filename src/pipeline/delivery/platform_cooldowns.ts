import { type Backoff, backoffMs } from "../../base/backoff.ts";
import type { Clock } from "../../base/clock.ts";
import { LONGEST_PAUSE_MS } from "../../platform/retry_after.ts";

const RETRY: Backoff = { firstMs: 1_000, lastMs: 300_000 };

interface Cooldown {
  /** Monotonic ms, because setting the clock back must not extend a cooldown. */
  endsAt: number;
  strikes: number;
}

/** Tracks the cooldowns of platforms and chats that are unreachable or rate-limited (contract 10.3). */
export class PlatformCooldowns {
  readonly #clock: Clock;
  readonly #cooldowns = new Map<string, Cooldown>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Starts a cooldown for a platform, or one of its chats, of at most a day. A delay that the platform requested replaces the back-off.
   * Returns the end in Unix ms.
   */
  start(platform: string, chat: string | undefined, retryAfterMs: number | null): number {
    const key = buildKey(platform, chat);
    const now = this.#clock.monotonic();
    const { endsAt: before, strikes: earlier } = this.#cooldowns.get(key) ?? { endsAt: now, strikes: 0 };
    // A delivery that fails during a cooldown was sent before it started, so it adds no strike.
    const strikes = before > now ? earlier : earlier + 1;
    const asked = Math.ceil(retryAfterMs ?? backoffMs(RETRY, strikes));
    const ms = Math.min(Math.max(asked, RETRY.firstMs), LONGEST_PAUSE_MS);
    const endsAt = Math.max(before, now + ms);
    this.#cooldowns.set(key, { endsAt, strikes });
    return this.#clock.now() + Math.ceil(endsAt - now);
  }

  /** Returns the end of the cooldown in Unix ms, or null when sending is allowed. */
  findEnd(platform: string, chat?: string): number | null {
    const ends = [buildKey(platform), ...(chat === undefined ? [] : [buildKey(platform, chat)])]
      .map((key) => this.#cooldowns.get(key)?.endsAt ?? 0);
    const left = Math.max(...ends) - this.#clock.monotonic();
    // Whole ms, because the database stores it.
    return left > 0 ? this.#clock.now() + Math.ceil(left) : null;
  }

  /** Clears an expired cooldown after a delivery. An active cooldown stays: the message was sent before it started. */
  clear(platform: string, chat: string): void {
    const now = this.#clock.monotonic();
    for (const key of [buildKey(platform), buildKey(platform, chat)]) {
      if ((this.#cooldowns.get(key)?.endsAt ?? now) <= now) this.#cooldowns.delete(key);
    }
  }
}

function buildKey(platform: string, chat?: string): string {
  return chat === undefined ? platform : `${platform}:${chat}`;
}
