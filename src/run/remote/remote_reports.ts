// pending -> running -> its end: stores the reports of runners as the executor stores local runs
import { basename } from "node:path";
import { cutToBytes } from "../../base/bytes.ts";
import type { Wakeups } from "../../base/wakeups.ts";
import type { Clock } from "../../base/clock.ts";
import { createLogger } from "../../base/log.ts";
import { type DataPaths, getEventsPath, getLogPath } from "../../base/paths.ts";
import type { RecentActivity } from "../../base/recent_activity.ts";
import type { HumanWaits } from "../../base/human_waits.ts";
import { conflict, notFound, ServiceError } from "../../domain/call/error.ts";
import { clampUsage } from "../../domain/work/execution.ts";
import { isSessionId } from "../../domain/chat/session.ts";
import type {
  LeaseTimes,
  RunEnd,
  RunEvents,
  RunLogPart,
  RunLogSize,
  RunnerBeat,
  RunnerBeatAnswer,
  RunRepoPart,
  RunReport,
} from "../../domain/workers/runner.ts";
import type { RunnerBinding } from "../../domain/call/scope.ts";
import { faultPoint } from "../../base/fault_point.ts";
import { stripEscapes } from "../../engine/protocol/transcript.ts";
import { cutResult } from "../../engine/result.ts";
import { LogCopies } from "../../files/log_copy.ts";
import { openInside } from "../../files/uploads.ts";
import type { Database, Statement } from "../../store/db/database.ts";
import { listParts } from "../../store/chat/inbound_part.ts";
import { updateReservationUse } from "../../store/workers/budget_ledger.ts";
import {
  endLease,
  findRemoteRun,
  listRunnerRuns,
  type RemoteRunRow,
  renewLeases,
  storeReportNumber,
} from "../../store/workers/remote_run.ts";
import { findRunnerRow, storeRunnerReport } from "../../store/workers/runner.ts";
import { buildClaim, buildReplacedError } from "./remote_claims.ts";
import type { RunRepos } from "./run_repos.ts";
import type { Recorder } from "../recorder.ts";
import type { Interruption } from "../../domain/work/interruption.ts";

const log = createLogger("runner");

interface RemoteReportsOptions {
  db: Database;
  clock: Clock;
  wakeups: Wakeups;
  paths: DataPaths;
  recorder: Recorder;
  repos: RunRepos;
  times: LeaseTimes;
  waits: HumanWaits;
  steps: RecentActivity;
  maxLogBytes: number;
  /** Returns the wakeup key of a growing log. */
  logWakeup: (executionId: string) => string;
}

/** A file for a runner. The caller closes it. */
interface RunFile {
  file: Deno.FsFile;
  size: number;
  mime: string;
  originalName: string;
}

/** Stores the reports of runners. Reports may arrive twice or late. Reports of runs that the runner lost are `conflict`. */
export class RemoteReports {
  readonly #options: RemoteReportsOptions;
  readonly #logs: LogCopies;

  constructor(options: RemoteReportsOptions) {
    this.#options = options;
    this.#logs = new LogCopies(options.maxLogBytes);
  }

  /** Renews the leases of a runner's runs. Returns these runs, and which of them have to end. Throws `conflict`. */
  async renewLeases(
    binding: RunnerBinding,
    { process, epoch, running }: RunnerBeat,
  ): Promise<RunnerBeatAnswer> {
    const { db, clock, times, waits } = this.#options;
    const row = await findRunnerRow(db, binding.id);
    if (row === null || row.process !== process || row.epoch !== epoch) throw buildReplacedError(binding);
    const now = clock.now();
    await db.writeOr([
      ...storeRunnerReport(row.id, epoch, now),
      renewLeases(row.id, running, now, times.lease_ms),
    ], () => buildReplacedError(binding));
    const leased = await listRunnerRuns(db, row.id);
    const requested = new Set(running);
    return {
      runs: leased.filter(({ id }) => requested.has(id))
        .map(({ id, stop }) => ({ id, stop, waited_ms: waits.getWaitedMs(id) })),
    };
  }

  /** Appends the missing part of a log. Returns its size. Throws `conflict`. */
  async appendLog(
    binding: RunnerBinding,
    id: string,
    part: RunLogPart,
    bytes: Uint8Array,
  ): Promise<RunLogSize> {
    const { db, wakeups, logWakeup, paths } = this.#options;
    // A server that took over may share the files.
    if (db.broken !== null) {
      throw new ServiceError("unavailable", `Cannot store anything: ${db.broken}`, { retry_after_s: 1 });
    }
    await this.#findLeased(binding, id, part.epoch);
    const path = part.kind === "log" ? getLogPath(paths, id) : getEventsPath(paths, id);
    const size = await this.#logs.append(path, part.offset, bytes);
    faultPoint("log.append");
    wakeups.notify(logWakeup(id));
    return { size };
  }

  /** Stores reports of a run in progress. Throws `conflict`. */
  async storeReports(binding: RunnerBinding, id: string, { epoch, events }: RunEvents): Promise<void> {
    const row = await this.#findLeased(binding, id, epoch);
    const fresh = events.filter(({ no }) => no > row.events);
    const last = fresh.at(-1);
    if (last === undefined) return;
    const { won } = await this.#options.db.write([
      ...storeReportNumber(id, { epoch, from: row.events, to: last.no }),
      ...fresh.flatMap((event) => this.#buildStatements(row, event)),
    ]);
    if (!won) {
      // A concurrent copy of the request was faster.
      if ((await this.#findLeased(binding, id, epoch)).events >= last.no) return;
      throw conflict(`Cannot store reports of run ${id}: other reports arrived first`);
    }
    faultPoint("pid.recorded");
    for (const event of fresh) if (event.kind === "step") this.#options.steps.note(id, event.words);
  }

  #buildStatements(row: RemoteRunRow, event: RunReport): Statement[] {
    const { recorder, clock } = this.#options;
    switch (event.kind) {
      case "started":
        // The runner's clock may be wrong.
        return row.started_at === null ? recorder.buildStart(buildClaim(row), clock.now()) : [];
      case "session": {
        const id = parseSession(event.id);
        return id === ""
          ? []
          : recorder.buildSession(buildClaim(row), { id, usage: clampUsage(event.usage) });
      }
      case "usage":
        return [updateReservationUse(row.execution_id, clampUsage(event.usage))];
      case "step":
        return [];
    }
  }

  /** Opens a file of the run's message. Throws `not_found`, `conflict`. */
  async openMedia(binding: RunnerBinding, id: string, name: string): Promise<RunFile> {
    const { db, paths } = this.#options;
    const row = await this.#findCurrent(binding, id);
    const media = (await listParts(db, row.message_id)).map((part) => part.media)
      .find((one) => one !== null && basename(one.path) === name);
    const found = media === undefined || media === null ? null : await openInside(paths.uploads, media.path);
    if (found === null) throw notFound("file", name);
    return { file: found.file, size: found.size, mime: media?.mime ?? "", originalName: name };
  }

  /** Opens a bundle of the branch that a run works on. Throws `not_found`, and `conflict` with the reason. */
  async openRepo(binding: RunnerBinding, id: string, signal: AbortSignal): Promise<RunFile> {
    const row = await this.#findCurrent(binding, id);
    if (row.tree_id === "") throw notFound("repository of run", id);
    const bundle = await this.#options.repos.open(row, signal);
    return { ...bundle, mime: "application/octet-stream", originalName: `${id}.bundle` };
  }

  /** Stores a part of the commits of a run. Returns the next expected offset. Throws `conflict`, `invalid_request`, `payload_too_large`. */
  async storeCommits(
    binding: RunnerBinding,
    id: string,
    part: RunRepoPart,
    bytes: Uint8Array,
  ): Promise<RunLogSize> {
    const row = await this.#findLeased(binding, id, part.epoch);
    return { size: await this.#options.repos.receive(row, part, bytes) };
  }

  /** Stores the end of a run. A repeated report changes nothing. Throws `conflict` when the runner lost the run. */
  async storeEnd(binding: RunnerBinding, id: string, end: RunEnd): Promise<void> {
    const { db, clock, wakeups, paths, recorder, repos, waits, steps, logWakeup } = this.#options;
    const row = await this.#find(binding, id, end.epoch);
    if (row.reported === 1) return;
    const now = clock.now();
    const at = end.ran_ms === null ? null : Math.max(row.created_at, Math.trunc(now - end.ran_ms));
    const start = { at: row.started_at ?? at, stored: row.started_at !== null };
    const { verify, ...reported } = end.outcome;
    const outcome = {
      ...reported,
      engineUse: "" as const,
      text: cutResult(stripEscapes(reported.text)),
      error: cutToBytes(stripEscapes(reported.error).replaceAll("\0", "\ufffd"), ERROR_MAX_BYTES),
      usage: clampUsage(reported.usage),
      sessionId: parseSession(reported.sessionId),
      sessionUsage: clampUsage(reported.sessionUsage),
    };
    const won = await repos.move(row, async (tree) => {
      const statements = await recorder.buildEnd(
        buildClaim(row),
        { ...outcome, ...(verify === undefined ? {} : { verify }), ...(tree === null ? {} : { tree }) },
        start,
        end.interruption as Interruption | null,
      );
      // The log must be on disk before the outcome (reliability DUR-9).
      await Promise.all(
        [getLogPath(paths, id), getEventsPath(paths, id)].map((path) => this.#logs.sync(path)),
      );
      faultPoint("outcome.pre-commit");
      return (await db.write([...endLease(id, end.epoch), ...statements])).won;
    });
    faultPoint("outcome.post-commit");
    wakeups.notify(logWakeup(id));
    waits.forget(id);
    steps.forget(id);
    // A concurrent copy of the report was faster.
    if (!won && (await this.#find(binding, id, end.epoch)).reported === 0) throw buildLostError(id);
    if (!won) log.info("The end of run {id} was reported twice", { id });
  }

  async #findLeased(binding: RunnerBinding, id: string, epoch: number): Promise<RemoteRunRow> {
    const row = await this.#findCurrent(binding, id);
    if (row.epoch !== epoch) throw buildLostError(id);
    return row;
  }

  /** Finds a run that the runner has now. A download names no epoch. */
  async #findCurrent(binding: RunnerBinding, id: string): Promise<RemoteRunRow> {
    const row = await findRemoteRun(this.#options.db, binding.id, id);
    if (row === null || row.lease_until === null || row.lease_until === 0) throw buildLostError(id);
    return row;
  }

  // A run of another runner looks like a missing one: runners see nothing of each other.
  async #find(binding: RunnerBinding, id: string, epoch: number): Promise<RemoteRunRow> {
    const row = await findRemoteRun(this.#options.db, binding.id, id);
    if (row === null || row.epoch !== epoch) throw buildLostError(id);
    return row;
  }
}

function parseSession(id: string): string {
  return isSessionId(id) ? id : "";
}

const ERROR_MAX_BYTES = 4 * 1024;

function buildLostError(id: string) {
  return conflict(`Cannot accept this: run ${id} does not belong to this runner, or no longer does`);
}
