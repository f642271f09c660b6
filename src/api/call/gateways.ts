// Which requests of runs pass through gateways, with which secret, and what they use (contract-3 22)
import { LRUCache } from "lru-cache";
import type { Clock } from "../../base/clock.ts";
import { createLogger } from "../../base/log.ts";
import { buildCacheOptions } from "../../base/memoize.ts";
import { WAKEUP, type Wakeups } from "../../base/wakeups.ts";
import { ServiceError } from "../../domain/call/error.ts";
import type { RunBinding } from "../../domain/call/scope.ts";
import { formatBudgetReason, isLifted, mustStop, sumBudgetUsage } from "../../domain/workers/budget.ts";
import { type Gateway, SECRET_MARK } from "../../domain/workers/gateway.ts";
import type { GatewayKind } from "../../domain/call/vocabulary.ts";
import type { RunCalls } from "../../domain/work/run_calls.ts";
import { Months } from "../../domain/workers/month.ts";
import type { Catalog } from "../../engine/catalog.ts";
import type { GatewayKeys } from "../../engine/gateway_keys.ts";
import type { Database } from "../../store/db/database.ts";
import { addGatewayUse, findGatewayGrant, type GatewayUse } from "../../store/work/gateway_use.ts";
import type { SecretValue } from "../../store/account/secret_store.ts";
import { hasBudgets, listOpenRuns, measureBudgets } from "../../store/workers/budget_ledger.ts";
import type { Authority } from "./authority.ts";
import type { Caller } from "../../domain/call/scope.ts";

const log = createLogger("gateway");

/** Requests of one run that are open at the same time. */
const GATEWAY_RUN_REQUESTS_MAX = 256;
/** Requests of all runs that are open at the same time. */
const GATEWAY_REQUESTS_MAX = 1_000;
// An ended run loses its streams within a second.
const CHECK_EVERY_MS = 400;
const RUNS_CLOSED_MAX = 10_000;
const RESPONSES_KNOWN_MAX = 100_000;
const CUT_MAX_MS = 5_000;

interface GatewaysOptions {
  db: Database;
  clock: Clock;
  wakeups: Wakeups;
  authority: Authority;
  engines: Catalog;
  keys: GatewayKeys;
  gateways: readonly Gateway[];
  readSecret: (name: string) => Promise<SecretValue>;
  timeZone: string;
  /** The calls of runs for their traces, or null while traces are off. */
  calls: RunCalls | null;
}

/** An open request of a run. */
export interface GatewayRequest {
  gateway: Gateway;
  run: RunBinding;
  caller: Caller;
  /** The engine of the run. */
  engine: string;
  /** The use by this request so far. */
  use: GatewayUse;
  /** Aborts when the run has ended. */
  signal: AbortSignal;
  /** Must be called when the request has ended and its use is counted. */
  close: () => void;
}

interface OpenRequest {
  token: string;
  presented: string;
  executionId: string;
  abort: AbortController;
  closed: Promise<void>;
}

interface PendingUse {
  executionId: string;
  gateway: string;
  use: GatewayUse;
}

const NO_USE: GatewayUse = {
  ...{ requests: 0, refused: 0, answers: 0, estimated: 0, input_tokens: 0, output_tokens: 0, cost_usd: null },
};

/** The gateways of the service, and the requests that runs have open through them. */
export class Gateways {
  readonly #options: GatewaysOptions;
  readonly #byName: ReadonlyMap<string, Gateway>;
  readonly #months: Months;
  readonly #open = new Set<OpenRequest>();
  readonly #closedRuns = new LRUCache<string, true>(buildCacheOptions(RUNS_CLOSED_MAX));
  /** Ids of stored responses, by conversation. */
  readonly #responses = new LRUCache<string, true>(buildCacheOptions(RESPONSES_KNOWN_MAX));
  /** Requests without counted tokens, which are stored later, by run and gateway. */
  readonly #pending = new Map<string, PendingUse>();
  #checker: ReturnType<typeof setInterval> | undefined;

  constructor(options: GatewaysOptions) {
    this.#options = options;
    this.#byName = new Map(options.gateways.map((gateway) => [gateway.name, gateway]));
    this.#months = new Months(options.timeZone);
  }

  /** Names in alphabetical order. */
  get names(): string[] {
    return [...this.#byName.keys()].sort();
  }

  /**
   * Opens a request of the run that `presented` belongs to: its token, or the key of its process. Throws `unauthenticated` for an ended run,
   * and `forbidden` for any other caller and for a gateway that the run may not use.
   */
  async open(presented: string, name: string): Promise<GatewayRequest> {
    const { authority, keys, db, engines } = this.#options;
    const token = keys.resolve(presented);
    const caller = token === null ? null : (await authority.authenticate(token))?.caller ?? null;
    if (token === null || caller === null || this.#closedRuns.has(caller.run?.execution_id ?? "")) {
      throw buildEndedError();
    }
    const { run } = caller;
    if (run === null) {
      throw new ServiceError(
        "forbidden",
        "Cannot use a gateway with this token: only runs may, with their own",
      );
    }
    const grant = await findGatewayGrant(db, run.execution_id);
    const engine = engines.find(grant?.engine ?? "");
    const names = [...JSON.parse(grant?.gateways ?? "[]") as string[], engine?.config.gateway];
    const gateway = this.#byName.get(name);
    if (gateway === undefined || !names.includes(name)) {
      throw new ServiceError(
        "forbidden",
        `Cannot use the gateway ${JSON.stringify(name.slice(0, 100))}: this run has none of that name. ` +
          "An operator can add it to the worker: svc ctl worker update <id> --gateways",
      );
    }
    return this.#register({ token, presented, caller, run, gateway, engine: grant?.engine ?? "" });
  }

  #register(
    { token, presented, run, ...rest }: {
      token: string;
      presented: string;
      caller: Caller;
      run: RunBinding;
      gateway: Gateway;
      engine: string;
    },
  ): GatewayRequest {
    const { execution_id: executionId } = run;
    // The run may have ended while the service read its row.
    if (this.#closedRuns.has(executionId)) throw buildEndedError();
    const own = [...this.#open].filter((one) => one.executionId === executionId).length;
    if (own >= GATEWAY_RUN_REQUESTS_MAX || !(this.#open.size < GATEWAY_REQUESTS_MAX)) {
      throw new ServiceError(
        "rate_limited",
        "Cannot open another request through a gateway: too many are open",
        {
          retry_after_s: 1,
        },
      );
    }
    const abort = new AbortController();
    const { promise: closed, resolve } = Promise.withResolvers<void>();
    const open: OpenRequest = { token, presented, executionId, abort, closed };
    this.#open.add(open);
    this.#checker ??= setInterval(() => void this.#check(), CHECK_EVERY_MS);
    const startedAt = this.#options.clock.now();
    const close = () => {
      if (this.#open.delete(open)) this.#noteCall(request, startedAt);
      resolve();
    };
    const request: GatewayRequest = { ...rest, run, use: NO_USE, signal: abort.signal, close };
    return request;
  }

  #noteCall({ run, gateway, use }: GatewayRequest, startedAt: number): void {
    this.#options.calls?.add(run.execution_id, {
      ...{ kind: "gateway", name: gateway.name, startedAt, endedAt: this.#options.clock.now(), input: "" },
      ...{ isOk: use.refused === 0, inputTokens: use.input_tokens, outputTokens: use.output_tokens },
    });
  }

  /** Returns the name and value of the header with the secret. Throws `unavailable` without a usable secret. */
  async buildHeader({ name, secret, header }: Gateway): Promise<[name: string, value: string]> {
    const found = await this.#options.readSecret(secret);
    const problem = findSecretProblem(secret, found);
    if (problem !== null || found.state !== "value") {
      throw new ServiceError("unavailable", `Cannot use the gateway ${name}: ${problem}`);
    }
    return [header.name, header.value.replace(SECRET_MARK, () => found.value)];
  }

  /** Returns the kind of the gateway of this name, or null. */
  findKind(name: string): GatewayKind | null {
    return this.#byName.get(name)?.kind ?? null;
  }

  /** Returns why the gateway of this name cannot be used, and the remedy. null if it can. */
  async findProblem(name: string): Promise<string | null> {
    const gateway = this.#byName.get(name);
    if (gateway === undefined) {
      return "config.yaml does not name it. Add it there, or remove it from the worker.";
    }
    return findSecretProblem(gateway.secret, await this.#options.readSecret(gateway.secret));
  }

  /** Throws `budget` when a budget with action `stop` of this run is used up. The budget stage then ends the run. */
  async checkBudgets({ run }: GatewayRequest): Promise<void> {
    const { db, clock, engines, wakeups } = this.#options;
    if (!await hasBudgets(db)) return;
    const now = clock.now();
    const open = await listOpenRuns(db, now);
    const own = open.find(({ execution_id }) => execution_id === run.execution_id);
    if (own === undefined) throw buildEndedError();
    const month = this.#months.find(now);
    for (const budget of await measureBudgets(db, { targets: own.targets }, now, month)) {
      if (budget.action !== "stop" || isLifted(budget, now)) continue;
      const usage = sumBudgetUsage(budget, open, engines.canMeasure(budget));
      if (!mustStop(budget, usage)) continue;
      wakeups.notify(WAKEUP.budget);
      throw new ServiceError(
        "budget",
        `Cannot send this request: ${formatBudgetReason(budget, usage, null)}. The run ends.`,
      );
    }
  }

  /** Adds to the use of a gateway by a run, which is stored within a second. */
  note(request: GatewayRequest, more: Partial<GatewayUse>): void {
    const { run, gateway, engine } = request;
    const use = { ...NO_USE, ...more, cost_usd: this.#computeCost(engine, more) };
    request.use = addUse(request.use, use);
    this.#addPending({ executionId: run.execution_id, gateway: gateway.name, use });
    this.#checker ??= setInterval(() => void this.#check(), CHECK_EVERY_MS);
  }

  /** Adds to the use of a gateway by a run. Resolves when it is stored. */
  async count(request: GatewayRequest, more: Partial<GatewayUse>): Promise<void> {
    this.note(request, more);
    await this.#store(request.run.execution_id);
  }

  #addPending({ executionId, gateway, use }: PendingUse): void {
    const key = `${executionId} ${gateway}`;
    const before = this.#pending.get(key)?.use;
    this.#pending.set(key, { executionId, gateway, use: before === undefined ? use : addUse(before, use) });
  }

  #computeCost(engine: string, { input_tokens = 0, output_tokens = 0 }: Partial<GatewayUse>): number | null {
    const prices = this.#options.engines.find(engine)?.config.prices;
    if (prices === undefined) return null;
    return (input_tokens * prices.input + output_tokens * prices.output) / 1_000_000;
  }

  // A use that could not be stored is stored with the next one.
  async #store(executionId: string | null): Promise<void> {
    const taken = [...this.#pending].filter(([, one]) =>
      executionId === null || one.executionId === executionId
    );
    if (taken.length === 0) return;
    for (const [key] of taken) this.#pending.delete(key);
    try {
      await this.#options.db.write(
        taken.map(([, { executionId, gateway, use }]) => addGatewayUse(executionId, gateway, use)),
      );
    } catch (error) {
      log.error("Cannot store what gateways counted yet: {error}", { error });
      for (const [, one] of taken) this.#addPending(one);
    }
  }

  // The row decides whether a run is open.
  async #check(): Promise<void> {
    if (this.#open.size === 0 && this.#pending.size === 0) {
      clearInterval(this.#checker);
      this.#checker = undefined;
      return;
    }
    await this.#store(null);
    const valid = new Map<string, Promise<boolean>>();
    await Promise.all([...this.#open].map(async (request) => {
      const { token, presented, abort } = request;
      if (!valid.has(presented)) valid.set(presented, this.#isValid(presented, token));
      if (!await valid.get(presented)) abort.abort();
    }));
  }

  async #isValid(presented: string, token: string): Promise<boolean> {
    const { authority, keys } = this.#options;
    // While the database cannot answer, the run continues.
    return keys.resolve(presented) === token &&
      await authority.authenticate(token).catch(() => token) !== null;
  }

  /** Refuses further requests of a run, ends its open ones, and stores what they used. Resolves before the run's end may be stored. */
  async closeRun(executionId: string): Promise<void> {
    this.#closedRuns.set(executionId, true);
    const own = [...this.#open].filter((request) => request.executionId === executionId);
    for (const { abort } of own) abort.abort();
    if (own.length > 0) {
      const late = new Promise<void>((resolve) => setTimeout(resolve, CUT_MAX_MS));
      await Promise.race([Promise.all(own.map(({ closed }) => closed)), late]);
    }
    await this.#store(executionId);
  }

  /** Notes that a conversation got a stored response with this id. */
  noteResponse(request: GatewayRequest, id: string): void {
    this.#responses.set(buildResponseKey(request, id), true);
  }

  /** Returns whether this conversation got the stored response. */
  hasResponse(request: GatewayRequest, id: string): boolean {
    return this.#responses.has(buildResponseKey(request, id));
  }
}

function addUse(one: GatewayUse, other: GatewayUse): GatewayUse {
  const cost = one.cost_usd === null && other.cost_usd === null
    ? null
    : (one.cost_usd ?? 0) + (other.cost_usd ?? 0);
  return {
    requests: one.requests + other.requests,
    refused: one.refused + other.refused,
    answers: one.answers + other.answers,
    estimated: one.estimated + other.estimated,
    input_tokens: one.input_tokens + other.input_tokens,
    output_tokens: one.output_tokens + other.output_tokens,
    cost_usd: cost,
  };
}

function buildResponseKey({ gateway, run }: GatewayRequest, id: string): string {
  return [gateway.name, run.worker_id, run.session_key || run.task_id, id].join("\0");
}

function buildEndedError(): ServiceError {
  return new ServiceError(
    "unauthenticated",
    "Cannot accept this key: it is the token of a run or of an agent's process, and no run goes on with it",
  );
}

/** Returns why a secret cannot be the value of a header, and the remedy. null if it can. */
function findSecretProblem(name: string, found: SecretValue): string | null {
  const remedy = `Run svc ctl secret set ${name}.`;
  if (found.state === "missing") return `no secret is called ${name}. ${remedy}`;
  if (found.state === "lost") return `another signing key encrypted the secret ${name}. ${remedy}`;
  if (!/[^\x20-\x7e]/.test(found.value)) return null;
  return `the secret ${name} has characters that a header cannot have, such as a line break. ${remedy}`;
}
