import { LRUCache } from "lru-cache";
import type { Clock } from "../base/clock.ts";
import { ALL_SCOPES, BEE_SCOPES, BEE_SUBJECT, type Caller, WORKER_SCOPES_DEFAULT } from "../domain/scope.ts";
import { findBeeGrant } from "../store/bee_run.ts";
import type { Database } from "../store/database.ts";
import { findRunGrant } from "../store/execution.ts";
import { type Claims, OPERATOR_KEY_VERSION } from "../base/token.ts";
import { verifyToken } from "../base/token_verify.ts";

/** A recognised caller, with the claims of the token. */
export interface Authentication {
  caller: Caller;
  claims: Claims;
}

const REMEMBERED_TOKENS_MAX = 2_000;

/** Holds the signing key and the password's version; turns tokens into callers. */
export class Authority {
  readonly key: Uint8Array;
  readonly username: string;
  /** Goes up with each change of the password. */
  version: number;
  readonly #db: Database;
  readonly #clock: Clock;
  // Verifying a signature costs more than most reads, so a verified token is remembered until it expires.
  readonly #verified = new LRUCache<string, Claims>({ max: REMEMBERED_TOKENS_MAX });

  constructor(options: { key: Uint8Array; username: string; version: number; db: Database; clock: Clock }) {
    this.key = options.key;
    this.username = options.username;
    this.version = options.version;
    this.#db = options.db;
    this.#clock = options.clock;
  }

  /** Who holds this token; null when it is forged, expired or revoked, or its run is over (contract 2.2, contract 2.8). */
  async authenticate(token: string): Promise<Authentication | null> {
    const claims = await this.#claims(token);
    return claims === null ? null : await this.recognise(claims);
  }

  /** As authenticate(), for claims that were verified before: open streams ask again and again. */
  async recognise(claims: Claims): Promise<Authentication | null> {
    if (claims.typ === "run") return await this.#run(claims);
    if (claims.ver !== OPERATOR_KEY_VERSION && claims.ver !== this.version) return null;
    return { caller: { subject: claims.sub, scopes: ALL_SCOPES, run: null }, claims };
  }

  async #claims(token: string): Promise<Claims | null> {
    const known = this.#verified.get(token);
    const now = this.#clock.now();
    if (known !== undefined) {
      if (known.exp * 1000 > now) return known;
      this.#verified.delete(token);
      return null;
    }
    const claims = await verifyToken(this.key, token, now);
    if (claims === null) return null;
    this.#verified.set(token, claims);
    return claims;
  }

  // The rights are read at every request: a scope taken away, or a run that ended, counts at once (reliability SCP-5).
  async #run(claims: Claims): Promise<Authentication | null> {
    const { execution_id = "", attempt = 0 } = claims;
    if (claims.sub === BEE_SUBJECT) {
      const run = await findBeeGrant(this.#db, execution_id, attempt);
      return run && { caller: { subject: BEE_SUBJECT, scopes: BEE_SCOPES, run }, claims };
    }
    const grant = await findRunGrant(this.#db, execution_id, attempt);
    if (grant === null) return null;
    const { scopes: text, ...run } = grant;
    const own = JSON.parse(text) as string[];
    const scopes = own.length === 0 ? WORKER_SCOPES_DEFAULT : own;
    return { caller: { subject: claims.sub, scopes, run }, claims };
  }
}
