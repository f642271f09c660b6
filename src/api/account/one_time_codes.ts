import { randomBytes } from "node:crypto";
import { LRUCache } from "lru-cache";
import type { Clock } from "../../base/clock.ts";
import { digest } from "../../base/bytes.ts";

/** What a code is good for: a login in a browser (contract 9). */
export interface CodeGrant {
  /** "" for the operator. */
  userId: string;
  /** Of the user's password when the code was made; another one since then makes it worthless. */
  version: number;
  by: "code" | "oidc";
  /** How long the login can be renewed, in ms. */
  lastsMs: number;
  /** What the browser has to show as well, or "" for whoever has the code. */
  binding: string;
}

/** How long a code is good, in seconds. */
export const CODE_LIFE_S = 60;

const CODES_MAX = 1_000;
const CODE_BYTES = 32;

/** Codes that are good once within a minute. They are kept in memory: a restart ends them. */
export class OneTimeCodes {
  readonly #grants: LRUCache<string, CodeGrant>;

  constructor(clock: Clock) {
    const perf = { now: () => clock.monotonic() };
    this.#grants = new LRUCache({ max: CODES_MAX, ttl: CODE_LIFE_S * 1000, ttlResolution: 0, perf });
  }

  /** A new code for this login. */
  issue(grant: CodeGrant): string {
    const code = randomBytes(CODE_BYTES).toString("base64url");
    this.#grants.set(digest(code), grant);
    return code;
  }

  /** What the code is good for, once; null when it is unknown, used or too old. A wrong binding uses it up, too. */
  take(code: string, binding: string): CodeGrant | null {
    const key = digest(code);
    const grant = this.#grants.get(key);
    this.#grants.delete(key);
    if (grant === undefined) return null;
    return grant.binding === "" || grant.binding === binding ? grant : null;
  }
}
