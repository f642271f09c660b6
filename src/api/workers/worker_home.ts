import { type Answer, requireFound } from "../call/answer.ts";
import { conflict, invalid, notFound } from "../../domain/call/error.ts";
import { NO_HOME } from "../../domain/workers/runner.ts";
import type { Worker, WorkerRehome } from "../../domain/workers/worker.ts";
import { getOwnWorkDir } from "../../base/paths.ts";
import { listOpenExecutionIds } from "../../store/work/execution.ts";
import { findRunner } from "../../store/workers/runner.ts";
import { deleteForeignContexts } from "../../store/chat/conversation_context.ts";
import { findWorker, setWorkerHome } from "../../store/workers/worker.ts";
import { type Call, recordBy } from "../call/call.ts";
import type { Deps } from "../call/services.ts";
import { checkElsewhere } from "./elsewhere.ts";
import { getWorker } from "./worker.ts";

/**
 * Moves a worker to another runner, with "" to the next runner that runs it, or with `none` to no runner. Copies no files and deletes its
 * contexts (contract 18). Throws `not_found`, `invalid_request`, or `conflict` during a run.
 */
export async function rehomeWorker(
  deps: Deps<"db" | "clock" | "engines" | "paths">,
  call: Call,
  id: string,
  { home }: WorkerRehome,
): Promise<Answer<Worker>> {
  const { db, clock, paths } = deps;
  const worker = requireFound(await findWorker(db, id), "worker", id);
  if (worker.repo !== null) {
    throw conflict(
      `Cannot rehome ${worker.name}: a worker with a repository has no home. Any runner with its labels takes its runs.`,
    );
  }
  const now = clock.now();
  const isName = home !== "" && home !== NO_HOME;
  const runner = isName ? await findRunner(db, home, now) : null;
  if (isName && runner === null) throw invalid("home", `no runner is called ${JSON.stringify(home)}`);
  const to = runner?.name ?? home;
  const { work_dir, repo, runs_on } = worker;
  const ownDir = getOwnWorkDir(paths, id, repo !== null);
  checkElsewhere(call, {
    changed: worker.home === NO_HOME || to === NO_HOME ? ["home"] : [],
    wanted: { home: to, runs_on, resources: null },
    workDir: work_dir === ownDir ? "" : work_dir,
  });
  const missing = worker.runs_on.filter((label) => runner !== null && !runner.labels.includes(label));
  if (missing.length > 0) {
    const words = `${home} lacks the label ${missing.join(", ")}, which the worker requires`;
    throw invalid("home", `${words}. Choose another runner, or change the worker's runs_on.`);
  }
  const buildRunning = () =>
    conflict(`Cannot rehome ${worker.name}: it is running. Cancel its run, or wait for its end.`);
  if ((await listOpenExecutionIds(db, id)).length > 0) throw buildRunning();
  const { won } = await db.write([
    ...setWorkerHome(id, to, now),
    deleteForeignContexts(id, ""),
    recordBy(call, now, {
      kind: "worker.updated",
      worker_id: id,
      data: { fields: ["home"], from: worker.home, to },
    }),
  ]);
  // The worker started a run meanwhile, or was deleted.
  if (!won) throw await findWorker(db, id) === null ? notFound("worker", id) : buildRunning();
  return await getWorker(deps, call, id);
}
