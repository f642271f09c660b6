// Connects runners and gives each claim its run. A repeated claim gets the same run (contract 18).
import { basename, join } from "node:path";
import { type Clock, sleep } from "../../base/clock.ts";
import { createLogger } from "../../base/log.ts";
import type { DataPaths } from "../../base/paths.ts";
import { VERSION } from "../../base/version.ts";
import { type IsolationConfig, type RemoteIsolation, resolveBox } from "../../domain/workers/isolation.ts";
import type { Verify } from "../../domain/work/command.ts";
import { conflict, ServiceError } from "../../domain/call/error.ts";
import {
  CLAIM_WAIT_MAX_MS,
  type LeaseTimes,
  RUNNER_PROTOCOL,
  type RunnerClaim,
  type RunnerClaimAnswer,
  type WireOrder,
} from "../../domain/workers/runner.ts";
import type { GatewayKind } from "../../domain/call/vocabulary.ts";
import type { RunnerBinding } from "../../domain/call/scope.ts";
import { type Database, guardRows } from "../../store/db/database.ts";
import { listParts } from "../../store/chat/inbound_part.ts";
import {
  findClaimedRun,
  listOpenRemoteRuns,
  type RemoteRunRow,
  renewLeases,
} from "../../store/workers/remote_run.ts";
import { disputeLaunch, findOpenLaunch } from "../../store/workers/launch.ts";
import {
  findRunnerRow,
  replaceRunnerProcess,
  type RunnerRow,
  storeRunnerReport,
} from "../../store/workers/runner.ts";
import { findTree } from "../../store/work/tree.ts";
import { findIsolation, listRemoteWorkDirs } from "../../store/workers/worker.ts";
import { buildBriefing, buildGrant } from "../briefing.ts";
import { buildAuthor } from "../branches.ts";
import type { Claim } from "../claim.ts";
import type { RunTracer } from "../environment.ts";
import { signRunToken } from "../run_token.ts";
import type { Catalog } from "../../engine/catalog.ts";
import type { SentVariables } from "../variables.ts";
import type { RunMasks } from "../run_masks.ts";
import { buildMasks } from "../../engine/process/masks.ts";
import type { ClaimRequest, ClaimRequests } from "./claim_requests.ts";

const log = createLogger("runner");

interface RemoteClaimsOptions {
  db: Database;
  clock: Clock;
  polls: ClaimRequests;
  times: LeaseTimes;
  /** Returns the signing key, which changes at a rotation. */
  key: () => Uint8Array;
  timeZone: string;
  paths: DataPaths;
  isolation: IsolationConfig;
  engines: Catalog;
  /** Returns the kind of a gateway, or null if the configuration has none of this name. */
  findGatewayKind: (name: string) => GatewayKind | null;
  resolveVariables: (request: {
    workerId: string;
    gateway: string | null;
    hasSecrets: boolean;
  }) => Promise<SentVariables>;
  /** undefined while traces are off. */
  traceRun: RunTracer | undefined;
  /** Reads the secrets that a worker names now. */
  readSecrets: (workerId: string) => Promise<string[]>;
  /** Holds the secrets of runs in progress. */
  masks: RunMasks;
  limits: { max_prompt_bytes: number; max_log_bytes: number };
  /** Drops the cached runners after a token has ended. */
  forgetTokens: () => void;
  /** Wakes the dispatcher to find a task. */
  wakeDispatcher: () => void;
}

// A run may take longer than its engine's time limit. Its token ends with the run in any case.
const TOKEN_LIFE_S = 31 * 24 * 60 * 60;
// A lease counts from the sending of its claim, so a claim waits for at most this share of the lease.
const WAIT_SHARE = 1 / 4;
// Storing a contact is a commit. A runner whose contact is this recent stays online during its longest wait.
const SEEN_EVERY_MS = 5_000;

const REPEATED = new ServiceError("unavailable", "Cannot answer this claim: the same request arrived again", {
  retry_after_s: 1,
});

/** Answers the claims of runners. */
export class RemoteClaims {
  readonly #options: RemoteClaimsOptions;

  constructor(options: RemoteClaimsOptions) {
    this.#options = options;
  }

  /**
   * Connects the runner, and returns the function that waits for its run. The answer has the run with its lease, or `run: null` when none
   * came in time. Throws `conflict` when another process runs as this runner, or when this one is older than the service.
   */
  async claim(
    binding: RunnerBinding,
    claim: RunnerClaim,
  ): Promise<(signal: AbortSignal) => Promise<RunnerClaimAnswer>> {
    const since = this.#options.clock.now();
    const runner = await this.#connect(binding, claim);
    return async (signal) => {
      const row = await this.#waitForRun(runner, claim, signal);
      const run = row === null || isEnded(row, runner)
        ? null
        : await this.#leaseOrder(row, runner, { claim, since });
      return { epoch: runner.epoch, version: VERSION, ...this.#options.times, run };
    };
  }

  async #waitForRun(
    runner: RunnerRow,
    claim: RunnerClaim,
    signal: AbortSignal,
  ): Promise<RemoteRunRow | null> {
    const { db, clock, polls, times, wakeDispatcher } = this.#options;
    const wakeup = new AbortController();
    const request: ClaimRequest = {
      ...{ runner, requestId: claim.request_id, boxFault: claim.box_fault, giving: null, isRepeated: false },
      // Passes a reason, because abort() without one creates an error with its stack.
      wake: () => wakeup.abort("woken"),
    };
    try {
      // From here on, an earlier copy of the request no longer waits, and its run, if any, is stored.
      await polls.add(request);
      if (await findClaimedRun(db, runner.id, claim.request_id) === null) {
        wakeDispatcher();
        const waitMs = Math.min(claim.wait_ms, CLAIM_WAIT_MAX_MS, times.lease_ms * WAIT_SHARE);
        await sleep(clock, waitMs, AbortSignal.any([wakeup.signal, signal]));
      }
    } finally {
      polls.remove(request);
    }
    // The dispatcher may be writing a run for this request.
    await request.giving?.catch(() => {});
    const row = await findClaimedRun(db, runner.id, claim.request_id);
    // An answer without a run would be final, although the repeated request may still get one.
    if (row === null && request.isRepeated) throw REPEATED;
    return row;
  }

  /**
   * Builds the order and renews the lease. Returns null when the lease was lost meanwhile. The lease counts from the arrival of the claim,
   * so a lease that is younger than that needs no write. A run whose order cannot be built is not renewed, so it is lost and retried.
   */
  async #leaseOrder(
    row: RemoteRunRow,
    runner: RunnerRow,
    { claim, since }: { claim: RunnerClaim; since: number },
  ): Promise<WireOrder | null> {
    const { db, clock, times } = this.#options;
    const order = await this.#buildOrder(row, runner, claim);
    if ((row.lease_until ?? 0) >= since + times.lease_ms) return order;
    const renewed = renewLeases(runner.id, [row.execution_id], clock.now(), times.lease_ms);
    const { won } = await db.write(guardRows(1, renewed));
    return won ? order : null;
  }

  /** Stores the contact and returns the runner's row. Throws `conflict` when another process runs as this runner. */
  async #connect(binding: RunnerBinding, claim: RunnerClaim): Promise<RunnerRow> {
    const { db, clock } = this.#options;
    if (claim.protocol !== RUNNER_PROTOCOL) {
      throw conflict(
        `Cannot give runs to svc ${claim.version}: this service is ${VERSION}, and their protocols differ. ` +
          `Install ${VERSION} on the runner.`,
      );
    }
    const row = await findRunnerRow(db, binding.id);
    if (row === null) throw buildRemovedError();
    await this.#requireLaunch(row);
    const now = clock.now();
    const silentMs = now - (row.last_seen_at ?? 0);
    if (row.process === claim.process) {
      if (claim.epoch !== 0 && claim.epoch !== row.epoch) throw buildReplacedError(row);
      if (silentMs >= SEEN_EVERY_MS || isChanged(row, claim)) {
        await db.writeOr(storeRunnerReport(row.id, row.epoch, now, claim), () => buildReplacedError(row));
      }
      return row;
    }
    if (row.launcher !== "" && row.epoch > 0) throw await this.#refuseSecondProcess(row);
    if (claim.epoch !== 0) throw buildReplacedError(row);
    if (row.place !== "" && row.place !== claim.place && silentMs < this.#options.times.lease_ms) {
      throw conflict(
        `Cannot run as ${row.name}: another process uses this name in ${row.work_root}, or did within the last ${
          this.#options.times.lease_ms / 1_000
        } s. Start the runner there, or wait. Two machines need separate runners: ` +
          "svc ctl runner add <name>",
      );
    }
    await db.writeOr(replaceRunnerProcess(row, claim, now), () => buildReplacedError(row));
    log.info("Runner {name} connected: svc {version}, {runs} runs at a time", {
      name: row.name,
      version: claim.version,
      runs: claim.max_runs,
    });
    const taken = await findRunnerRow(db, binding.id);
    if (taken === null) throw buildRemovedError();
    return taken;
  }

  // The runner of an ended launch may only repeat its last report.
  async #requireLaunch({ id, launcher }: RunnerRow): Promise<void> {
    if (launcher !== "" && await findOpenLaunch(this.#options.db, id) === null) throw buildRemovedError();
  }

  /** Ends the run of a launch, because one of the two processes with its token is not the job. Returns the error for both. */
  async #refuseSecondProcess(row: RunnerRow): Promise<ServiceError> {
    const { db, clock, forgetTokens } = this.#options;
    const launch = await findOpenLaunch(db, row.id);
    const detail = `two processes claimed with the token of one launch of ${row.launcher}`;
    if (launch !== null) await db.write(disputeLaunch(launch, detail, clock.now()));
    forgetTokens();
    return conflict(`Cannot claim: ${detail}. Its run has ended, and the token is invalid.`);
  }

  async #buildOrder(row: RemoteRunRow, runner: RunnerRow, { engines }: RunnerClaim): Promise<WireOrder> {
    const { db, clock, key, timeZone, limits } = this.#options;
    const claim = buildClaim(row);
    const { execution } = claim;
    const engine = engines.find(({ name }) => name === execution.engine) ??
      { name: execution.engine, agent: false };
    const grant = buildGrant(execution.worker_id, JSON.parse(row.scopes) as string[]);
    const { session_key, worker_id, task_id, execution_id, message_id, attempt, run_id, instruction } =
      execution;
    return {
      execution: {
        ...{ session_key, worker_id, task_id, execution_id, message_id, attempt, run_id, instruction },
        engine: execution.engine,
      },
      work_dir: claim.workDir,
      repo: await this.#findRepo(row),
      verify: JSON.parse(row.verify) as Verify | null,
      ...await this.#resolveVariables(execution, runner),
      isolation: await this.#findIsolation(worker_id, runner),
      time_zone: timeZone,
      max_log_bytes: limits.max_log_bytes,
      grant: { subject: grant.subject, scopes: [...grant.scopes] },
      token: await signRunToken(key(), { identity: execution, grant, lifeS: TOKEN_LIFE_S }, clock.now()),
      files: await listFiles(db, message_id),
      briefing: await buildBriefing(db, claim, engine, {
        pathOf: (path) => join(runner.work_root, "files", execution_id, basename(path)),
        ctl: `${runner.work_root}/bin/svc`,
        maxPromptBytes: limits.max_prompt_bytes,
      }),
    };
  }

  /** Resolves the worker's variables and its engine's gateway. Masks the secrets in what the run sends to the service. */
  async #resolveVariables(
    { execution_id, worker_id, engine }: Claim["execution"],
    runner: RunnerRow,
  ): Promise<SentVariables & Pick<WireOrder, "gateway">> {
    const { engines, findGatewayKind, resolveVariables, traceRun, masks } = this.#options;
    const name = engines.find(engine)?.config.gateway ?? null;
    const kind = name === null ? null : findGatewayKind(name);
    const hasSecrets = runner.secrets === 1;
    const sent = await resolveVariables({ workerId: worker_id, gateway: name, hasSecrets });
    const values = [...Object.values(sent.secrets), ...sent.mcp.secrets];
    if (values.length > 0) masks.set(execution_id, buildMasks(values));
    const trace = await traceRun?.(execution_id) ?? null;
    if (trace !== null) sent.env.TRACEPARENT = trace;
    return { ...sent, gateway: name === null || kind === null ? null : { name, kind } };
  }

  /** Masks the secrets of every run on a runner again, after a start of the service. */
  async maskOpenRuns(): Promise<void> {
    const { db, masks, readSecrets } = this.#options;
    for (const { execution_id, worker_id } of await listOpenRemoteRuns(db)) {
      const values = await readSecrets(worker_id);
      if (values.length > 0) masks.set(execution_id, buildMasks(values));
    }
  }

  async #findRepo({ tree_id, worker_id, worker_name }: RemoteRunRow): Promise<WireOrder["repo"]> {
    const tree = tree_id === "" ? null : await findTree(this.#options.db, tree_id);
    return tree === null ? null : { branch: tree.branch, author: buildAuthor(worker_id, worker_name) };
  }

  async #findIsolation(workerId: string, runner: RunnerRow): Promise<RemoteIsolation> {
    const { db, paths, isolation } = this.#options;
    const box = resolveBox(await findIsolation(db, workerId), isolation);
    const { network = null, max_network } = isolation.box;
    // A runner may put every run into a box.
    const hidden = runner.box === 0 ? [] : await listRemoteWorkDirs(db, workerId, paths.workers);
    return { box, network, max_network, hidden };
  }
}

async function listFiles(db: Database, messageId: string): Promise<string[]> {
  const parts = await listParts(db, messageId);
  return parts.flatMap(({ media }) => media === null ? [] : [basename(media.path)]);
}

/** Builds the claim of a run on a runner as the dispatcher made it. */
export function buildClaim(row: RemoteRunRow): Claim {
  const { session_key, worker_id, task_id, execution_id, message_id, attempt, run_id, tree_id } = row;
  const { worker_name, session_id, engine, instruction, created_at } = row;
  const { type, cron, time_zone, deliver_to, verify } = row;
  return {
    execution: {
      ...{ session_key, worker_id, task_id, execution_id, message_id, attempt, run_id, tree_id },
      ...{ worker_name, session_id, engine, fallback_from: "", instruction, created_at },
    },
    task: { type, cron, time_zone, deliver_to, verify, attempt: row.task_attempt },
    workDir: row.work_dir,
    remote: true,
  };
}

// Ended runs, and runs of another process, do not start again.
function isEnded({ lease_until, epoch }: RemoteRunRow, runner: RunnerRow): boolean {
  return lease_until === null || lease_until === 0 || epoch !== runner.epoch;
}

function isChanged(row: RunnerRow, { max_runs, engines, box, repo, version }: RunnerClaim): boolean {
  return row.box !== Number(box) || row.repo !== Number(repo) || row.max_runs !== max_runs ||
    row.version !== version ||
    row.engines !== JSON.stringify(engines);
}

/** Builds the error for a replaced process. */
export function buildReplacedError({ name }: { name: string }): ServiceError {
  return conflict(
    `Cannot continue as ${name}: another process runs as this runner now, and has taken over its runs`,
  );
}

function buildRemovedError(): ServiceError {
  return new ServiceError("unauthenticated", "Cannot accept this token: its runner was removed");
}
