import { LRUCache } from "lru-cache";
import { type Clock, sleep } from "../../base/clock.ts";
import { type Claims, OPERATOR_KEY_VERSION, RUNNER_SCOPES } from "../../base/token.ts";
import { verifyToken } from "../../base/token_verify.ts";
import { ServiceError } from "../../domain/call/error.ts";
import {
  ALL_SCOPES,
  BEE_SCOPES,
  BEE_SUBJECT,
  type Caller,
  WORKER_SCOPES_DEFAULT,
} from "../../domain/call/scope.ts";
import { scopesWithin } from "../../domain/account/token.ts";
import { ROLE_SCOPES } from "../../domain/account/user.ts";
import { findBeeGrant } from "../../store/chat/bee_run.ts";
import type { Database } from "../../store/db/database.ts";
import { findRunGrant } from "../../store/work/execution.ts";
import { findRunnerGrant, type RunnerGrant } from "../../store/workers/runner.ts";
import { findTokenGrant, noteTokenUse, type TokenGrant } from "../../store/account/token.ts";
import { findUserById, type UserRow } from "../../store/account/user.ts";

/** A caller who was recognised, and until when the token is good. */
export interface Authentication {
  caller: Caller;
  claims: Claims;
}

/** Why a caller who was let in is let in no longer; null while nothing has changed. */
export type Ended = "token_expired" | "revoked" | null;

/** What an authority is made of. */
interface AuthorityOptions {
  key: Uint8Array;
  /** Of this start of the service: tokens that `ctl` signs itself name it (contract 8.14). */
  instance: string;
  operator: { id: string; name: string; version: number };
  db: Database;
  clock: Clock;
}

const REMEMBERED_TOKENS_MAX = 2_000;
const REMEMBERED_PEOPLE_MAX = 2_000;
// How long a row is believed: what another process changed counts after that at the latest (contract 9).
const REMEMBERED_MS = 1_000;
const USE_NOTED_EVERY_MS = 60_000;
// Longer than a machine that is busy needs for the two hashes of a changed password.
const VERSION_WAIT_MS = 20_000;

/** Holds the signing key and the version of the operator's password; turns tokens into callers. */
export class Authority {
  readonly instance: string;
  readonly operatorId: string;
  readonly username: string;
  /** What signs and verifies every token of ours. */
  key: Uint8Array;
  #version: number;
  #pending: Promise<void> | null = null;
  readonly #db: Database;
  readonly #clock: Clock;
  // Verifying a signature costs more than most reads; what was verified once stays verified until it expires.
  readonly #verified = new LRUCache<string, Claims>({ max: REMEMBERED_TOKENS_MAX });
  readonly #rows: LRUCache<string, { row: Promise<UserRow | TokenGrant | RunnerGrant | null> }>;

  constructor({ key, instance, operator, db, clock }: AuthorityOptions) {
    this.key = key;
    this.instance = instance;
    this.operatorId = operator.id;
    this.username = operator.name;
    this.#version = operator.version;
    this.#db = db;
    this.#clock = clock;
    const perf = { now: () => clock.monotonic() };
    this.#rows = new LRUCache({ max: REMEMBERED_PEOPLE_MAX, ttl: REMEMBERED_MS, ttlResolution: 0, perf });
  }

  /**
   * The version that the operator's logins need: it goes up with each change of the password. Waits for one that is still to come
   * (awaitVersion()), and throws `unavailable` when it does not come within VERSION_WAIT_MS.
   */
  async operatorVersion(): Promise<number> {
    if (this.#pending !== null) await this.#inTime(this.#pending);
    return this.#version;
  }

  /** The password was changed: what an older version signed does not count from here on. */
  raiseVersion(version: number): void {
    this.#version = version;
  }

  /** The operator's password may be another one by now: until `version` says so, none of its logins counts. */
  awaitVersion(version: Promise<number>): void {
    this.#pending = version.then((known) => {
      this.#version = known;
      this.#pending = null;
    });
    // Who waits gets the error.
    this.#pending.catch(() => {});
  }

  async #inTime(pending: Promise<void>): Promise<void> {
    const waited = new AbortController();
    const late = sleep(this.#clock, VERSION_WAIT_MS, waited.signal).then(() => "late" as const);
    try {
      if (await Promise.race([pending, late]) !== "late") return;
    } finally {
      waited.abort();
    }
    throw new ServiceError(
      "unavailable",
      "Cannot check logins of the operator yet: the password that this start was given is not stored; try again",
      { retry_after_s: 5 },
    );
  }

  /** Who holds this token, or null: forged, expired, revoked, or its run is over (contract 2, contract 9). */
  async authenticate(token: string): Promise<Authentication | null> {
    const claims = await this.#claims(token);
    return claims === null ? null : await this.recognise(claims);
  }

  /** As authenticate(), for claims that were verified before: asked again by long-lived streams and waits. */
  async recognise(claims: Claims): Promise<Authentication | null> {
    const caller = await this.#callerOf(claims);
    return caller === null ? null : { caller, claims };
  }

  /**
   * Whether a caller who was let in may stay: not when a login's token has expired, the user is disabled, the token revoked,
   * or when other scopes hold than at the start (contract 9, reliability USR-2). A token that `ctl` signed lasts.
   */
  async ended({ caller, claims }: Authentication): Promise<Ended> {
    const expires = claims.ver !== OPERATOR_KEY_VERSION || claims.typ === "run";
    if (expires && claims.exp * 1000 <= this.#clock.now()) return "token_expired";
    const now = await this.#callerOf(claims);
    return now === null || now.scopes.join(" ") !== caller.scopes.join(" ") ? "revoked" : null;
  }

  /** Forgets what it believes of people: something about them was changed just now. */
  forget(): void {
    this.#rows.clear();
  }

  /** Another signing key: nothing that the old one signed counts any more (contract 8.16). */
  replaceKey(key: Uint8Array): void {
    this.key = key;
    this.#version++;
    this.#verified.clear();
    this.forget();
  }

  async #callerOf(claims: Claims): Promise<Caller | null> {
    switch (claims.typ) {
      case "run":
        return await this.#run(claims);
      case "token":
        return await this.#token(claims);
      case "runner":
        return await this.#runner(claims);
      case "access":
        return /^operator:/.test(claims.sub) || claims.sub === `user:${this.operatorId}`
          ? await this.#operator(claims)
          : await this.#user(claims);
    }
  }

  async #claims(token: string): Promise<Claims | null> {
    const known = this.#verified.get(token);
    const now = this.#clock.now();
    if (known !== undefined) {
      if (known.exp * 1000 > now) return known;
      this.#verified.delete(token);
      return null;
    }
    const { key } = this;
    const claims = await verifyToken(key, token, now);
    // Replaced meanwhile: what the old key signed does not count, and must not be remembered.
    if (this.key !== key) return await this.#claims(token);
    if (claims !== null) this.#verified.set(token, claims);
    return claims;
  }

  async #operator({ ver, instance }: Claims): Promise<Caller | null> {
    const byKey = ver === OPERATOR_KEY_VERSION;
    if (byKey ? instance !== this.instance : ver !== await this.operatorVersion()) return null;
    const person = {
      userId: this.operatorId,
      name: this.username,
      by: byKey ? "key" as const : "login" as const,
    };
    return { subject: `user:${this.username}`, scopes: ALL_SCOPES, run: null, person };
  }

  async #user({ sub, ver }: Claims): Promise<Caller | null> {
    const user = await this.#row(sub, () => findUserById(this.#db, sub.slice("user:".length)));
    if (user === null || user.disabled === 1 || user.version !== ver || user.origin === "operator") {
      return null;
    }
    return {
      subject: `user:${user.name}`,
      scopes: ROLE_SCOPES[user.role],
      run: null,
      person: { userId: user.id, name: user.name, by: "login" },
    };
  }

  async #runner({ sub }: Claims): Promise<Caller | null> {
    const runner = await this.#row(sub, () => findRunnerGrant(this.#db, sub.slice("runner:".length)));
    if (runner === null) return null;
    return { subject: `runner:${runner.name}`, scopes: RUNNER_SCOPES, run: null, person: null, runner };
  }

  // A token never reaches further than whoever made it does now.
  async #token({ jti, sub }: Claims): Promise<Caller | null> {
    const token = await this.#row(`token:${jti}`, () => findTokenGrant(this.#db, jti));
    if (token === null || token.disabled === 1 || sub !== `user:${token.user_id}`) return null;
    if (token.expires_at !== null && token.expires_at <= this.#clock.now()) return null;
    this.#noteUse(token);
    return {
      subject: `token:${token.name}`,
      scopes: scopesWithin(JSON.parse(token.scopes), ROLE_SCOPES[token.role]),
      run: null,
      person: { userId: token.user_id, name: token.user_name, by: "token" },
    };
  }

  #noteUse(token: TokenGrant): void {
    const now = this.#clock.now();
    if (token.last_used_at !== null && now - token.last_used_at < USE_NOTED_EVERY_MS) return;
    token.last_used_at = now;
    // The request does not wait for it, and is no worse without it.
    void this.#db.write([noteTokenUse(token.id, now)]).catch(() => {});
  }

  // Many requests of one caller, also at once, look once a second.
  #row<T extends UserRow | TokenGrant | RunnerGrant>(
    key: string,
    find: () => Promise<T | null>,
  ): Promise<T | null> {
    const known = this.#rows.get(key);
    if (known !== undefined) return known.row as Promise<T | null>;
    const row = find();
    const made = { row };
    this.#rows.set(key, made);
    row.catch(() => {
      if (this.#rows.peek(key) === made) this.#rows.delete(key);
    });
    return row;
  }

  // The rights are read at every request: a scope taken away, or a run that ended, counts at once (reliability SCP-5).
  async #run(claims: Claims): Promise<Caller | null> {
    const { execution_id = "", attempt = 0 } = claims;
    if (claims.sub === BEE_SUBJECT) {
      const run = await findBeeGrant(this.#db, execution_id, attempt);
      return run && { subject: BEE_SUBJECT, scopes: BEE_SCOPES, run, person: null };
    }
    const grant = await findRunGrant(this.#db, execution_id, attempt);
    if (grant === null) return null;
    const { scopes: text, ...run } = grant;
    const own = JSON.parse(text) as string[];
    const scopes = own.length === 0 ? WORKER_SCOPES_DEFAULT : own;
    return { subject: claims.sub, scopes, run, person: null };
  }
}
