import type { Services } from "../api/call/services.ts";
import type { RemoteRuns } from "../api/call/remote_runs.ts";
import { type Clock, sleep } from "../base/clock.ts";
import type { RecentActivity } from "../base/recent_activity.ts";
import { WAKEUP } from "../base/wakeups.ts";
import type { LeaseTimes } from "../domain/workers/runner.ts";
import { buildLogWakeup } from "../http/stream/log_stream.ts";
import { LaunchCommands } from "../pipeline/dispatch/launch_commands.ts";
import { Launches } from "../pipeline/dispatch/launches.ts";
import { Launching } from "../pipeline/dispatch/launching.ts";
import { Placement } from "../pipeline/dispatch/placement.ts";
import type { Rules } from "../run/ending.ts";
import { ClaimRequests } from "../run/remote/claim_requests.ts";
import type { RunTracer } from "../run/environment.ts";
import { RunRepos } from "../run/remote/run_repos.ts";
import { Recorder } from "../run/recorder.ts";
import type { RunMasks } from "../run/run_masks.ts";
import { createSentVariables } from "../run/local/service_variables.ts";
import { RemoteClaims } from "../run/remote/remote_claims.ts";
import { RemoteReports } from "../run/remote/remote_reports.ts";
import { readWorkerSecrets } from "../store/account/worker_secrets.ts";
import type { Database } from "../store/db/database.ts";
import { isRemote, renewAllLeases, stopRemote } from "../store/workers/remote_run.ts";

/** The service's side of runners: claims, reports and placement (contract 18). */
export interface Remote extends RemoteRuns {
  placement: Placement;
  launches: Launches;
  /** Asks the runner of a run to end it, with the next beat. Resolves when the run has ended, or after INTERRUPT_MAX_MS. */
  interrupt: (executionId: string) => Promise<void>;
  /** Ends a run because of the budget in `words`. */
  stopFor: (executionId: string, words: string) => Promise<void>;
  /** Renews every lease after a start, because runners could not report before. */
  renew: () => Promise<void>;
}

// A runner sends a beat every ten seconds, and an engine needs time to end.
const INTERRUPT_MAX_MS = 30_000;
const CHECK_EVERY_MS = 250;

export function createRemote(
  parts: Omit<Services, "stages">,
  { rules, steps, times, masks, traceRun, runnerUrl }: {
    rules: Rules;
    steps: RecentActivity;
    times: LeaseTimes;
    masks: RunMasks;
    traceRun: RunTracer | undefined;
    /** The service's address for runners. */
    runnerUrl: () => string;
  },
): Remote {
  const {
    db,
    clock,
    wakeups,
    paths,
    engines,
    authority,
    timeZone,
    limits,
    waits,
    gateways,
    isolation,
    secrets,
    launchers,
    mirrors,
  } = parts;
  const polls = new ClaimRequests();
  const launches = new Launches({
    ...{ db, clock, wakeups, launchers },
    commands: new LaunchCommands({ paths, key: () => authority.key, url: runnerUrl }),
    endRunner: (launchId) => {
      authority.forget();
      polls.wake(launchId);
    },
  });
  const recorder = new Recorder({
    ...{ db, clock, engines, paths, rules },
    endGateways: async (executionId) => {
      masks.delete(executionId);
      await gateways.closeRun(executionId);
    },
  });
  const endRun = async (executionId: string, reason: string) => {
    if (!await isRemote(db, executionId)) return;
    await db.write([stopRemote(executionId, reason, clock.now())]);
    await waitForEnd(db, clock, executionId);
  };
  const claims = new RemoteClaims({
    ...{ db, clock, paths, polls, times, timeZone, limits, engines, masks, isolation: isolation.config },
    findGatewayKind: (name) => gateways.findKind(name),
    readSecrets: (workerId) => readWorkerSecrets({ db, secrets }, workerId),
    resolveVariables: createSentVariables({
      ...{ db, secrets },
      findGatewayProblem: (name) => gateways.findProblem(name),
    }),
    traceRun,
    key: () => authority.key,
    forgetTokens: () => authority.forget(),
    wakeDispatcher: () => wakeups.notify(WAKEUP.dispatcher),
  });
  const reports = new RemoteReports({
    repos: new RunRepos({ db, clock, paths, secrets, mirrors }),
    ...{ db, clock, wakeups, paths, recorder, times, waits, steps, logWakeup: buildLogWakeup },
    maxLogBytes: limits.max_log_bytes,
  });
  return {
    claim: (...given) => claims.claim(...given),
    beat: (...given) => reports.renewLeases(...given),
    log: (...given) => reports.appendLog(...given),
    report: (...given) => reports.storeReports(...given),
    media: (...given) => reports.openMedia(...given),
    repo: (...given) => reports.openRepo(...given),
    commits: (...given) => reports.storeCommits(...given),
    end: (...given) => reports.storeEnd(...given),
    placement: new Placement({
      ...{ db, clock, paths, engines, polls, times },
      findGatewayKind: (name) => gateways.findKind(name),
      launching: new Launching(db, launchers),
    }),
    launches,
    interrupt: (executionId) => endRun(executionId, "cancelled"),
    stopFor: (executionId, words) => endRun(executionId, `budget: ${words}`),
    async renew() {
      await claims.maskOpenRuns();
      await db.write([renewAllLeases(clock.now() + times.lease_ms)]);
    },
  };
}

async function waitForEnd(db: Database, clock: Clock, executionId: string): Promise<void> {
  const until = clock.monotonic() + INTERRUPT_MAX_MS;
  while (clock.monotonic() < until && await isRemote(db, executionId)) await sleep(clock, CHECK_EVERY_MS);
}
