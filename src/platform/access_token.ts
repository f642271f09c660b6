import type { Clock } from "../base/clock.ts";
import { runBeforeSend } from "./request.ts";

// A new token replaces the old one this long before its end.
const SPARE_S = 300;
const LIFE_LEAST_S = 60;

interface Token {
  value: string;
  endsAt: number;
}

interface Source {
  clock: Clock;
  fetch: () => Promise<{ value: string; lifeS: number }>;
  /** Checks whether the platform refused a request because of its token. */
  isStale: (error: unknown) => boolean;
}

/** Fetches the token of an app when a request needs it. Concurrent requests share one fetch. */
export class AccessToken {
  readonly #source: Source;
  #token: Promise<Token> | null = null;

  constructor(source: Source) {
    this.#source = source;
  }

  /** Runs a request with the token. A request that the platform refused because of its token runs again with a new one. */
  async use<T>(request: (token: string) => Promise<T>): Promise<T> {
    const token = await runBeforeSend(() => this.#getToken());
    const used = this.#token;
    try {
      return await request(token.value);
    } catch (error) {
      if (!this.#source.isStale(error)) throw error;
    }
    if (used !== null) this.#drop(used);
    const next = await runBeforeSend(() => this.#getToken());
    return await request(next.value);
  }

  async #getToken(): Promise<Token> {
    while (true) {
      const fetching = this.#token ??= this.#fetch();
      try {
        const token = await fetching;
        if (token.endsAt > this.#source.clock.now()) return token;
        this.#drop(fetching);
      } catch (error) {
        this.#drop(fetching);
        throw error;
      }
    }
  }

  // Another request may have replaced the token already.
  #drop(fetched: Promise<Token>): void {
    if (this.#token === fetched) this.#token = null;
  }

  async #fetch(): Promise<Token> {
    const { clock, fetch } = this.#source;
    const { value, lifeS } = await fetch();
    const lifetimeS = Math.max(lifeS - SPARE_S, lifeS / 2, LIFE_LEAST_S);
    return { value, endsAt: clock.now() + lifetimeS * 1000 };
  }
}
