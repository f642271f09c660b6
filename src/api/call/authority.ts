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
import { intersectScopes } from "../../domain/account/token.ts";
import { ROLE_SCOPES } from "../../domain/account/user.ts";
import { findBeeGrant } from "../../store/chat/bee_run.ts";
import type { Database } from "../../store/db/database.ts";
import { findRunGrant } from "../../store/work/execution.ts";
import { findRunnerGrant, type RunnerGrant } from "../../store/workers/runner.ts";
import { findTokenGrant, recordTokenUse, type TokenGrant } from "../../store/account/token.ts";
import { findUserById, type UserRow } from "../../store/account/user.ts";

export interface Authentication {
  caller: Caller;
  claims: Claims;
}

/** Why a caller lost access during a request, or null while access continues. */
export type AccessEnd = "token_expired" | "revoked" | null;

interface AuthorityOptions {
  key: Uint8Array;
  /** Id of this process. Tokens that `ctl` signs with the key name it (contract 8.14). */
  instance: string;
  operator: { id: string; name: string; version: number };
  db: Database;
  clock: Clock;
}

const REMEMBERED_TOKENS_MAX = 2_000;
const REMEMBERED_PEOPLE_MAX = 2_000;
// Cache time of a row. Another process's change takes effect after this time at the latest.
const REMEMBERED_MS = 1_000;
const USE_NOTED_EVERY_MS = 60_000;
// Longer than a busy machine needs for the two hashes of a changed password.
const VERSION_WAIT_MS = 20_000;

export class Authority {
  readonly instance: string;
  readonly operatorId: string;
  readonly username: string;
  /** Signs and verifies all tokens of this service. */
  key: Uint8Array;
  #version: number;
  #pending: Promise<void> | null = null;
  readonly #db: Database;
  readonly #clock: Clock;
  // Verifying a signature costs more than most reads, and a verified token stays valid until it expires.
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
   * Returns the version that the operator's logins must have. Waits for a version that awaitVersion() announced; throws
   * `unavailable` when it is later than VERSION_WAIT_MS.
   */
  async getOperatorVersion(): Promise<number> {
    if (this.#pending !== null) await this.#waitForVersion(this.#pending);
    return this.#version;
  }

  /** Invalidates the operator's tokens of an older password version. */
  raiseVersion(version: number): void {
    this.#version = version;
  }

  /** Blocks the operator's logins until `version` resolves, because their password may have changed. */
  awaitVersion(version: Promise<number>): void {
    this.#pending = version.then((known) => {
      this.#version = known;
      this.#pending = null;
    });
    // The waiting caller handles the error.
    this.#pending.catch(() => {});
  }

  async #waitForVersion(pending: Promise<void>): Promise<void> {
    const waited = new AbortController();
    const late = sleep(this.#clock, VERSION_WAIT_MS, waited.signal).then(() => "late" as const);
    try {
      if (await Promise.race([pending, late]) !== "late") return;
    } finally {
      waited.abort();
    }
    throw new ServiceError(
      "unavailable",
      "Cannot check the operator's login: the password of this start is not stored yet. Try again.",
      { retry_after_s: 5 },
    );
  }

  /** Finds the caller of a token. Returns null for a forged, expired or revoked token and for an ended run. */
  async authenticate(token: string): Promise<Authentication | null> {
    const claims = await this.#verifyClaims(token);
    return claims === null ? null : await this.findCaller(claims);
  }

  /** Finds the caller of verified claims. Streams and waits repeat this check. */
  async findCaller(claims: Claims): Promise<Authentication | null> {
    const caller = await this.#loadCaller(claims);
    return caller === null ? null : { caller, claims };
  }

  /**
   * Checks whether a caller keeps access. Access ends with the login token, with a disabled user, a revoked token or
   * changed scopes. A token that `ctl` signed does not expire during a request.
   */
  async findAccessEnd({ caller, claims }: Authentication): Promise<AccessEnd> {
    const expires = claims.ver !== OPERATOR_KEY_VERSION || claims.typ === "run";
    if (expires && claims.exp * 1000 <= this.#clock.now()) return "token_expired";
    const now = await this.#loadCaller(claims);
    return now === null || now.scopes.join(" ") !== caller.scopes.join(" ") ? "revoked" : null;
  }

  /** Drops the cached users, tokens and runners after a change. */
  forget(): void {
    this.#rows.clear();
  }

  /** Replaces the signing key, which invalidates all tokens (contract 8.16). */
  replaceKey(key: Uint8Array): void {
    this.key = key;
    this.#version++;
    this.#verified.clear();
    this.forget();
  }

  async #loadCaller(claims: Claims): Promise<Caller | null> {
    switch (claims.typ) {
      case "run":
        return await this.#findRun(claims);
      case "token":
        return await this.#findToken(claims);
      case "runner":
        return await this.#findRunner(claims);
      case "access":
        return /^operator:/.test(claims.sub) || claims.sub === `user:${this.operatorId}`
          ? await this.#findOperator(claims)
          : await this.#findUser(claims);
    }
  }

  async #verifyClaims(token: string): Promise<Claims | null> {
    const known = this.#verified.get(token);
    const now = this.#clock.now();
    if (known !== undefined) {
      if (known.exp * 1000 > now) return known;
      this.#verified.delete(token);
      return null;
    }
    const { key } = this;
    const claims = await verifyToken(key, token, now);
    // The key was replaced meanwhile, so the result is invalid and must not be cached.
    if (this.key !== key) return await this.#verifyClaims(token);
    if (claims !== null) this.#verified.set(token, claims);
    return claims;
  }

  async #findOperator({ ver, instance, login }: Claims): Promise<Caller | null> {
    const byKey = ver === OPERATOR_KEY_VERSION;
    if (byKey ? instance !== this.instance : ver !== await this.getOperatorVersion()) return null;
    const person = {
      userId: this.operatorId,
      name: this.username,
      by: byKey ? "key" as const : "login" as const,
      ...(login === undefined ? {} : { loginId: login }),
    };
    return { subject: `user:${this.username}`, scopes: ALL_SCOPES, run: null, person };
  }

  async #findUser({ sub, ver, login }: Claims): Promise<Caller | null> {
    const user = await this.#findRow(sub, () => findUserById(this.#db, sub.slice("user:".length)));
    if (user === null || user.disabled === 1 || user.version !== ver) return null;
    return {
      subject: `user:${user.name}`,
      scopes: ROLE_SCOPES[user.role],
      run: null,
      person: {
        userId: user.id,
        name: user.name,
        by: "login",
        ...(login === undefined ? {} : { loginId: login }),
      },
    };
  }

  async #findRunner({ sub }: Claims): Promise<Caller | null> {
    const runner = await this.#findRow(sub, () => findRunnerGrant(this.#db, sub.slice("runner:".length)));
    if (runner === null) return null;
    return { subject: `runner:${runner.name}`, scopes: RUNNER_SCOPES, run: null, person: null, runner };
  }

  // A token never grants more than its user's current role.
  async #findToken({ jti, sub }: Claims): Promise<Caller | null> {
    const token = await this.#findRow(`token:${jti}`, () => findTokenGrant(this.#db, jti));
    if (token === null || token.disabled === 1 || sub !== `user:${token.user_id}`) return null;
    if (token.expires_at !== null && token.expires_at <= this.#clock.now()) return null;
    this.#recordUse(token);
    return {
      subject: `token:${token.name}`,
      scopes: intersectScopes(JSON.parse(token.scopes), ROLE_SCOPES[token.role]),
      run: null,
      person: { userId: token.user_id, name: token.user_name, by: "token", tokenId: token.id },
    };
  }

  #recordUse(token: TokenGrant): void {
    const now = this.#clock.now();
    if (token.last_used_at !== null && now - token.last_used_at < USE_NOTED_EVERY_MS) return;
    token.last_used_at = now;
    // The request does not wait for this write and succeeds without it.
    void this.#db.write([recordTokenUse(token.id, now)]).catch(() => {});
  }

  // Caches a row for one second, also for parallel requests.
  #findRow<T extends UserRow | TokenGrant | RunnerGrant>(
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

  // Reads the scopes for every request: a removed scope or an ended run takes effect immediately (reliability SCP-5).
  async #findRun(claims: Claims): Promise<Caller | null> {
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
