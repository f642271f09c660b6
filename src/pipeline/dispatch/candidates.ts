// Selects the runners that can do a task, and says which requirement none of them meets (contract 18).
import type { GatewayKind } from "../../domain/call/vocabulary.ts";
import type { Block } from "../../domain/work/block.ts";
import { NO_HOME, RUNNER_SILENT_MS, type RunnerClaim } from "../../domain/workers/runner.ts";
import type { Catalog } from "../../engine/catalog.ts";
import type { RunnerRow } from "../../store/workers/runner.ts";
import type { WaitingTask } from "../../store/work/task_queue.ts";

export interface CandidateOptions {
  engines: Catalog;
  /** Returns the kind of a gateway, or null if the configuration has none of this name. */
  findGatewayKind: (name: string) => GatewayKind | null;
}

/** The runners that remain after each requirement, in the order in which a person would check. */
export interface Candidates {
  wanted: readonly string[];
  engine: string;
  /** The gateway through which the engine reaches its model. */
  gateway: string | null;
  labelled: RunnerRow[];
  allowed: RunnerRow[];
  boxing: RunnerRow[];
  cloning: RunnerRow[];
  trusted: RunnerRow[];
  able: RunnerRow[];
  online: ReadonlyMap<string, RunnerRow>;
}

/** Selects the runners that can do a task. */
export function selectCandidates(
  { engines, findGatewayKind }: CandidateOptions,
  task: WaitingTask,
  { runners, now }: { runners: readonly RunnerRow[]; now: number },
): Candidates {
  const configured = engines.find(task.engine);
  const engine = configured?.name ?? task.engine;
  const gateway = configured?.config.gateway ?? null;
  const kind = gateway === null ? null : findGatewayKind(gateway);
  const wanted = JSON.parse(task.runs_on) as string[];
  const labelled = runners.filter(({ name, labels }) =>
    task.home === "" || isHomeless(task)
      ? isSubset(wanted, JSON.parse(labels) as string[])
      : name === task.home
  );
  const allowed = labelled.filter(({ allow_admin }) => task.admin === 0 || allow_admin === 1);
  const boxing = allowed.filter(({ box }) => task.boxed === 0 || box === 1);
  const cloning = boxing.filter(({ repo }) => task.has_repo === 0 || repo === 1);
  const trusted = cloning.filter(({ secrets }) => task.secret === 0 || secrets === 1);
  const able = trusted.filter(({ engines }) =>
    (JSON.parse(engines) as RunnerClaim["engines"]).some(({ name, gateways }) =>
      name === engine && (kind === null || gateways.includes(kind))
    )
  );
  const online = new Map(able.filter((row) => isOnline(row, now)).map((row) => [row.id, row]));
  return { wanted, engine, gateway, labelled, allowed, boxing, cloning, trusted, able, online };
}

function isOnline({ draining, last_seen_at }: RunnerRow, now: number): boolean {
  return draining === 0 && (last_seen_at ?? 0) > now - RUNNER_SILENT_MS;
}

/** Whether no runner has the directory of the worker. The service has the branches of a repository. */
export function isHomeless({ has_repo, home }: WaitingTask): boolean {
  return has_repo === 1 || home === NO_HOME;
}

function isSubset(some: readonly string[], all: readonly string[]): boolean {
  return some.every((one) => all.includes(one));
}

/** Returns why the only candidate cannot have the run, or null. "" if the worker was changed since. */
export function findRunnerFault(
  { labelled, allowed, boxing, cloning, trusted, able, engine, gateway }: Candidates,
  boxFault: string,
): string | null {
  if (able.length > 0) return null;
  if (labelled.length === 0) return "";
  if (allowed.length === 0) return "its worker holds *:*, which the launcher may not run";
  if (boxing.length === 0) {
    const why = boxFault || "install bubblewrap there, and set isolation.box.user if it runs as root";
    return `its worker needs a box, and the runner of the job cannot set one up: ${why}`;
  }
  if (cloning.length === 0) return "its worker has a repository, and the runner of the job has no git";
  if (trusted.length === 0) return "its worker names a secret, which launched runners do not get";
  const using = gateway === null ? "" : ` with a program that can use the gateway ${gateway}`;
  return `the runner of the job does not have the engine ${engine}${using}`;
}

/** Builds the block that names the first requirement without a runner. */
export function buildMissingRunner(
  task: WaitingTask,
  { wanted, engine, gateway, labelled, allowed, boxing, cloning, trusted, able }: Candidates,
): Block {
  const home = task.home === NO_HOME ? "" : task.home;
  const who = home === "" ? `runner with the labels ${wanted.join(", ")}` : `runner ${home}`;
  const only = labelled.length === 1 || home !== "";
  const reason = labelled.length === 0
    ? home === ""
      ? `no ${who} exists`
      : `its home, the ${who}, was removed. Give it another with: svc ctl worker rehome`
    : allowed.length === 0
    ? `no ${who} may run a worker that holds *:*. Add one with --allow-admin`
    : boxing.length === 0
    ? `its worker needs a box, and no ${who} can set one up. Its log says why: install bubblewrap, or set isolation.box.user if it runs as root, and restart it`
    : cloning.length === 0
    ? `its worker has a repository, and no ${who} can take one. Install git and the version of the service there`
    : trusted.length === 0
    ? `its worker names a secret in its variables, and no ${who} gets secrets. Add one with --secrets`
    : able.length === 0
    ? `no ${who} has the engine ${engine}${
      gateway === null ? "" : ` with a program that can use the gateway ${gateway}`
    }`
    : able.some(({ draining }) => draining === 1)
    ? `${only ? `the runner ${able[0]?.name} is` : `every ${who} is`} draining or silent`
    : home === ""
    ? `no ${who} is online`
    : `its home, the ${who}, is not online`;
  return {
    held: `runner:${home === "" ? wanted.join(",") : home}`,
    until: null,
    reason,
    whom: { kind: "all" },
  };
}
