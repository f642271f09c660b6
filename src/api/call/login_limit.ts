import { LRUCache } from "lru-cache";
import type { Clock } from "../../base/clock.ts";
import { digest } from "../../base/bytes.ts";
import { createLogger } from "../../base/log.ts";
import { buildCacheOptions } from "../../base/memoize.ts";
import { ServiceError } from "../../domain/call/error.ts";
import { listLoginFailures, storeLoginFailures } from "../../store/account/credential.ts";
import type { Database } from "../../store/db/database.ts";

const MINUTE_MS = 60_000;
// A network may fail this many times as often as one name from it, so random names do not bypass the limit.
const NETWORK_SHARE = 3;
const REMEMBERED_MAX = 50_000;
const SAVED_MAX = 1_000;

const log = createLogger("auth");

/** A hash of the name or network for which failures are counted, and its limit per minute. */
interface FailureLimit {
  who: string;
  max: number;
}

/** Builds the limit of a network. Each of its names may fail `max` times per minute. */
export function limitByNetwork(network: string, max: number): FailureLimit {
  return { who: digest(network), max: max * NETWORK_SHARE };
}

export function limitByName(
  name: string,
  network: string,
  max: number,
): [name: FailureLimit, network: FailureLimit] {
  return [{ who: digest(`${network}\n${name}`), max }, limitByNetwork(network, max)];
}

interface Failures {
  minute: number;
  count: number;
}

/** A login attempt during the password check. Call exactly one of its functions. */
export interface Attempt {
  /** Counts the attempt as failed. */
  fail: () => Promise<void>;
  /** Removes the attempt from the count: the password was right or not checked. */
  takeBack: () => void;
}

/**
 * Counts failed logins per minute in memory, so a flood of attempts writes nothing (contract 2.3). Stores a count when
 * it reaches its limit and the others at the stop, so a restart does not reset the limit.
 */
export class LoginLimits {
  readonly #db: Database;
  readonly #clock: Clock;
  readonly #failures = new LRUCache<string, Failures>(buildCacheOptions(REMEMBERED_MAX));
  #loaded: Promise<void> | null = null;

  constructor(db: Database, clock: Clock) {
    this.#db = db;
    this.#clock = clock;
  }

  /**
   * Starts an attempt and counts it before the password check, so parallel attempts cannot pass. Throws `rate_limited`
   * with `detail` when one limit is reached; that attempt does not count.
   */
  async startAttempt(counted: readonly FailureLimit[], detail: string): Promise<Attempt> {
    await (this.#loaded ??= this.#load().catch((error) => {
      this.#loaded = null;
      throw error;
    }));
    const now = this.#clock.now();
    const minute = findMinute(now);
    if (counted.some(({ who, max }) => this.#getFailures(who, minute).count >= max)) {
      throw new ServiceError("rate_limited", detail, {
        retry_after_s: Math.ceil(((minute + 1) * MINUTE_MS - now) / 1000),
      });
    }
    const entries = counted.map(({ who }) => this.#getFailures(who, minute));
    for (const entry of entries) entry.count++;
    return {
      fail: async () => {
        if (counted.some(({ max }, index) => entries[index]?.count === max)) await this.save();
      },
      takeBack: () => {
        for (const entry of entries) entry.count--;
      },
    };
  }

  clear(who: string): void {
    this.#failures.delete(who);
  }

  async save(): Promise<void> {
    // Before the first attempt nothing is loaded, and the stored counts may still be valid.
    if (this.#loaded === null) return;
    const minute = findMinute(this.#clock.now());
    const failures = [...this.#failures.entries()]
      .map(([who, one]) => ({ who, ...one }))
      .filter((one) => one.minute === minute && one.count > 0)
      .sort((a, b) => b.count - a.count)
      .slice(0, SAVED_MAX);
    try {
      await this.#db.write(storeLoginFailures(failures));
    } catch (error) {
      log.warning("Cannot store how many logins failed: {error}", { error });
    }
  }

  // Every other minute starts at 0, also an earlier one after the clock was set back.
  #getFailures(who: string, minute: number): Failures {
    const known = this.#failures.get(who);
    if (known?.minute === minute) return known;
    const fresh = { minute, count: 0 };
    this.#failures.set(who, fresh);
    return fresh;
  }

  async #load(): Promise<void> {
    const minute = findMinute(this.#clock.now());
    for (const { who, failures } of await listLoginFailures(this.#db, minute)) {
      this.#failures.set(who, { minute, count: failures });
    }
  }
}

function findMinute(now: number): number {
  return Math.floor(now / MINUTE_MS);
}
