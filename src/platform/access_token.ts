import type { Clock } from "../base/clock.ts";
import { notSent } from "./request.ts";

// A token is fetched anew before it ends.
const SPARE_S = 300;
const LIFE_LEAST_S = 60;

interface Token {
  value: string;
  endsAt: number;
}

interface Source {
  clock: Clock;
  fetch: () => Promise<{ value: string; lifeS: number }>;
  /** Whether a request was refused because its token is not known any more. */
  isStale: (error: unknown) => boolean;
}

/** The token of an app, which lives for some hours: fetched when it is needed, by one request for all that need it. */
export class AccessToken {
  readonly #source: Source;
  #token: Promise<Token> | null = null;

  constructor(source: Source) {
    this.#source = source;
  }

  /** A request with the token; once more with a new one when it was refused for its token, since nothing was done then. */
  async use<T>(request: (token: string) => Promise<T>): Promise<T> {
    const token = await notSent(() => this.#now());
    const used = this.#token;
    try {
      return await request(token.value);
    } catch (error) {
      if (!this.#source.isStale(error)) throw error;
    }
    if (used !== null) this.#forget(used);
    const next = await notSent(() => this.#now());
    return await request(next.value);
  }

  async #now(): Promise<Token> {
    while (true) {
      const fetching = this.#token ??= this.#fetch();
      try {
        const token = await fetching;
        if (token.endsAt > this.#source.clock.now()) return token;
        this.#forget(fetching);
      } catch (error) {
        this.#forget(fetching);
        throw error;
      }
    }
  }

  // Somebody else may fetch another one already.
  #forget(fetched: Promise<Token>): void {
    if (this.#token === fetched) this.#token = null;
  }

  async #fetch(): Promise<Token> {
    const { clock, fetch } = this.#source;
    const { value, lifeS } = await fetch();
    const keptS = Math.max(lifeS - SPARE_S, lifeS / 2, LIFE_LEAST_S);
    return { value, endsAt: clock.now() + keptS * 1000 };
  }
}
