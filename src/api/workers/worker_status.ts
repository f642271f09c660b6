import { formatWaitReason } from "../../domain/workers/rate_limit.ts";
import type { Worker, WorkerStatus } from "../../domain/workers/worker.ts";
import { getStateDir } from "../../base/paths.ts";
import { listOpenExecutionIds } from "../../store/work/execution.ts";
import { listLimits } from "../../store/workers/rate_limit.ts";
import { countTasksByStatus } from "../../store/work/task.ts";
import { listRunnerRows } from "../../store/workers/runner.ts";
import { findWorker } from "../../store/workers/worker.ts";
import type { Availability } from "../../engine/engine.ts";
import { NO_HOME, RUNNER_SILENT_MS } from "../../domain/workers/runner.ts";
import { type Answer, answer, requireFound } from "../call/answer.ts";
import type { Deps } from "../call/services.ts";
import { findReplacement } from "./fallback.ts";
import { findWorkDirFault } from "./work_dir.ts";

/** Returns a worker's activity and whether it can start a run. Throws `not_found`. */
export async function getWorkerStatus(
  deps: Deps<"db" | "clock" | "engines" | "paths" | "isolation" | "launchers">,
  id: string,
): Promise<Answer<WorkerStatus>> {
  const { db, clock, engines, paths } = deps;
  const worker = requireFound(await findWorker(db, id), "worker", id);
  const engine = engines.find(worker.engine);
  const away = worker.runs_on.length > 0;
  const found = away
    ? await checkRunners(deps, worker, clock.now())
    : await engines.probeOne(worker.engine, (engine) => getStateDir(paths, id, engine));
  const name = engine?.name ?? worker.engine;
  const limits = await listLimits(db, clock.now());
  const cooldown = limits.find((limit) => limit.engine === name) ?? null;
  const other = findReplacement(deps, worker, limits, clock.now());
  const problem = !found.usable ? found.detail : cooldown === null ? null : formatWaitReason(cooldown);
  const workDirFault = away ? null : await findWorkDirFault(worker.work_dir);
  const isUsable = workDirFault === null && (problem === null || other !== null);
  const state = problem === null || other === null ? problem ?? found.detail : `${other} runs it: ${problem}`;
  const counts = await countTasksByStatus(db, id);
  return answer({
    id,
    name: worker.name,
    status: worker.status === "idle" && !found.usable && other === null ? "unavailable" : worker.status,
    engine: name,
    version: found.version,
    usable: isUsable,
    detail: workDirFault ?? state,
    limited_until: cooldown?.until ?? null,
    work_dir: worker.work_dir,
    pending: counts.pending ?? 0,
    running: counts.running ?? 0,
    scheduled: counts.scheduled ?? 0,
    execution_ids: await listOpenExecutionIds(db, id),
  });
}

// Checks for online runners with the worker's labels. A waiting task reports whether they have its engine.
async function checkRunners(
  { db, launchers }: Deps<"db" | "launchers">,
  worker: Worker,
  now: number,
): Promise<Availability> {
  const { runs_on } = worker;
  const home = worker.home === NO_HOME ? "" : worker.home;
  const online = (await listRunnerRows(db)).filter(({ name, labels, draining, last_seen_at }) =>
    draining === 0 && (last_seen_at ?? 0) > now - RUNNER_SILENT_MS &&
    (home === "" ? runs_on.every((label) => (JSON.parse(labels) as string[]).includes(label)) : name === home)
  );
  const who = home === "" ? `a runner with the labels ${runs_on.join(", ")}` : `its home, the runner ${home}`;
  const launcher = worker.home === NO_HOME || home === "" && worker.repo !== null
    ? Object.entries(launchers).find(([, { labels }]) => runs_on.every((label) => labels.includes(label)))
    : undefined;
  if (online.length === 0 && launcher !== undefined) {
    return { usable: true, version: "", detail: `the launcher ${launcher[0]} starts its runners` };
  }
  return online.length === 0 ? { usable: false, version: "", detail: `${who} is not online` } : {
    usable: true,
    version: "",
    detail: `runs on ${online.map(({ name }) => name).slice(0, 5).join(", ")}`,
  };
}
