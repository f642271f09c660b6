import { randomBytes } from "node:crypto";
import { LRUCache } from "lru-cache";
import type { Clock } from "../../base/clock.ts";
import { digest } from "../../base/bytes.ts";

/** The browser login that a code permits. */
export interface CodeGrant {
  /** Id of the user, or "" for the operator. */
  userId: string;
  /** Version of the user's password when the code was issued. A later change invalidates the code. */
  version: number;
  by: "code" | "oidc";
  /** How long the login can be refreshed, in ms. */
  lastsMs: number;
  /** The sign-in's id that the browser must present, or "" when the code alone is enough. */
  binding: string;
}

export const CODE_LIFE_S = 60;

const CODES_MAX = 1_000;
const CODE_BYTES = 32;

/** Codes that work once within a minute. Only memory has them, so a restart invalidates them. */
export class OneTimeCodes {
  readonly #grants: LRUCache<string, CodeGrant>;

  constructor(clock: Clock) {
    const perf = { now: () => clock.monotonic() };
    this.#grants = new LRUCache({ max: CODES_MAX, ttl: CODE_LIFE_S * 1000, ttlResolution: 0, perf });
  }

  issue(grant: CodeGrant): string {
    const code = randomBytes(CODE_BYTES).toString("base64url");
    this.#grants.set(digest(code), grant);
    return code;
  }

  /**
   * Uses up a code and returns its grant. Returns null when the code is unknown, used or expired. A wrong binding uses up the code, too.
   */
  take(code: string, binding: string): CodeGrant | null {
    const grant = this.find(code, binding);
    this.#grants.delete(digest(code));
    return grant;
  }

  /** Returns the grant of a code and keeps the code valid. Returns null for an unknown code. */
  find(code: string, binding: string): CodeGrant | null {
    const grant = this.#grants.get(digest(code));
    if (grant === undefined) return null;
    return grant.binding === "" || grant.binding === binding ? grant : null;
  }
}
