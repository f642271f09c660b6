import { isAbsolute, resolve } from "node:path";
import { invalid, notFound, ServiceError } from "../../domain/call/error.ts";
import type { Json } from "../../domain/call/json.ts";
import type { Listing } from "../../domain/call/page.ts";
import { type Caller, grants, WORKER_SCOPES_DEFAULT } from "../../domain/call/scope.ts";
import {
  RUN_FIELDS,
  type Worker,
  WORKER_DEFAULTS,
  type WorkerCreate,
  type WorkerFilter,
  type WorkerUpdate,
} from "../../domain/workers/worker.ts";
import type { SkillSource } from "../../domain/workers/skill.ts";
import { type DataPaths, getOwnWorkDir } from "../../base/paths.ts";
import { createId } from "../../base/id.ts";
import type { Database, Statement } from "../../store/db/database.ts";
import { findDepartmentRef, listDescendantIds } from "../../store/workers/department.ts";
import { deleteForeignContexts, discardWorkerRunContexts } from "../../store/chat/conversation_context.ts";
import {
  findIsolation,
  findWorker,
  findWorkerJson,
  insertWorker,
  listWorkers as listWorkerRows,
  updateWorker as updateWorkerRow,
  type WorkerChange,
} from "../../store/workers/worker.ts";
import { type Answer, answerPage, requireFound } from "../call/answer.ts";
import { type Call, recordBy } from "../call/call.ts";
import { checkCommands, checkMaySet } from "../work/task_commands.ts";
import { createOnce, type Creation } from "../call/idempotency.ts";
import { checkEngines, endOutdatedProcesses } from "./engine.ts";
import { checkFallback } from "./fallback.ts";
import { checkGateways } from "./gateway.ts";
import type { Deps } from "../call/services.ts";
import { checkElsewhere, setsHome } from "./elsewhere.ts";
import { checkIsolation } from "./isolation.ts";
import { checkRepo, resolveRepo } from "./repo.ts";
import { applyMcpPatch, checkMcp, findMcpPatch } from "./mcp.ts";
import { checkSkills, fetchSkills, hasSources } from "./skills.ts";
import { findWarning, markUnavailable } from "./unavailable.ts";
import { makeWorkDir, resolveWorkDir } from "./work_dir.ts";
import { applyEnvPatch, checkEnv, findEnvPatch, grantNamedSecrets, hideSecrets } from "./worker_env.ts";

type WorkerDeps = Deps<
  "db" | "clock" | "paths" | "engines" | "gateways" | "runLimits" | "isolation" | "skills"
>;

/** Creates a worker and its work directory. Throws `invalid_request` or `forbidden`. */
export async function createWorker(
  deps: WorkerDeps,
  call: Call,
  input: WorkerCreate,
): Promise<Answer<Worker>> {
  const created = await createOnce(deps, call, () => planWorker(deps, call, input));
  return { ...created, ...await findWarning(deps, created, input.scopes) };
}

async function planWorker(deps: WorkerDeps, call: Call, input: WorkerCreate): Promise<Creation<Worker>> {
  const { db, clock, paths, isolation: { config } } = deps;
  await checkNewWorker(deps, call, input);
  // Last, because it may take long.
  const skills = await fetchSkills(deps, input.skills);
  const { run } = call.caller;
  // Else a run would leave its box by a worker that it creates.
  const isolation = run === null ? input.isolation : await findIsolation(db, run.worker_id);
  const id = createId();
  const now = clock.now();
  const workDir = findWorkDir(id, input, paths);
  const departments = await resolveDepartments(db, input.departments);
  const { paused, ...attributes } = input;
  const response: Worker = {
    id,
    ...attributes,
    engine_args: omitEmpty(input.engine_args),
    departments,
    skills,
    work_dir: workDir,
    isolation,
    isolation_effective: isolation ?? config.default,
    status: paused ? "paused" : "idle",
    paused,
    created_at: now,
    updated_at: now,
  };
  const away = input.runs_on.length > 0;
  if (!away) await makeWorkDir(workDir);
  const own = input.work_dir === "" && !away;
  return {
    // Removes only a directory that was created for this worker. A requested one may belong to others.
    ...(own ? { undo: () => Deno.remove(workDir).catch(() => {}) } : {}),
    statements: [
      ...insertWorker(response, departments.map((department) => department.id)),
      ...grantNamedSecrets(call.caller.subject, id, input, now),
      recordBy(call, now, { kind: "worker.created", worker_id: id, data: { name: input.name } }),
    ],
    response,
  };
}

async function checkNewWorker(deps: WorkerDeps, call: Call, input: WorkerCreate): Promise<void> {
  const { db, engines, gateways, runLimits, paths } = deps;
  const changed = listChangedFields(WORKER_DEFAULTS, input);
  checkAuthority(call.caller, changed);
  checkGrant(call.caller, input.scopes);
  checkEngines(engines, input);
  checkCommands({ call, engines, engine: input.engine }, { verify: input.verify ?? undefined });
  const { isolation, engine, runs_on, work_dir } = input;
  checkElsewhere(call, { changed, wanted: input, workDir: work_dir });
  if (isolation !== null) checkMaySet(call, "isolation");
  if (input.fallback) checkMaySet(call, "fallback");
  if (input.gateways.length > 0) checkGateways({ gateways }, call, input.gateways);
  checkSkills(deps, call, { engine, runs_on, before: [], wanted: input.skills });
  const created = { workerId: null, engine, before: {} };
  await checkEnv({ db, engines }, call, { ...created, patch: input.env });
  await checkMcp({ db, engines }, call, { ...created, runs_on, patch: input.mcp });
  const { repo } = input;
  await checkRepo(deps, call, { workerId: null, before: null, repo, workDir: work_dir });
  const workDir = work_dir === "" || runs_on.length > 0 ? null : resolveWorkDir(work_dir, paths);
  await checkIsolation(deps, { id: "", isolation, engine, workDir, runs_on });
  checkFallback(deps, input);
  await runLimits.take(call, "workers");
}

// A runner's path is not resolved here.
function findWorkDir(id: string, { work_dir, runs_on, repo }: WorkerCreate, paths: DataPaths): string {
  if (work_dir === "") return getOwnWorkDir(paths, id, repo !== null);
  if (runs_on.length === 0) return resolveWorkDir(work_dir, paths);
  if (!isAbsolute(work_dir)) throw invalid("work_dir", "must be absolute: it is a path of the runner");
  return resolve(work_dir);
}

/** Lists workers of any of the given departments. An unknown department has no workers. */
export async function listWorkers(
  deps: Deps<"db" | "engines" | "paths">,
  call: Call,
  filter: WorkerFilter,
) {
  // Programs read the same page repeatedly, and a search for the program of an unusable engine takes longer than the list.
  const read = async () => {
    const found = await listInDepartments(deps, filter);
    return { ...found, json: await markUnavailable(deps, found.json) };
  };
  const key = `workers ${JSON.stringify(filter)}`;
  const found = answerPage(await deps.db.readCached(key, read, ({ json }) => json.length));
  return { ...found, json: hideSecrets(call, found.json) };
}

async function listInDepartments({ db }: Deps<"db">, filter: WorkerFilter): Promise<Listing<Worker>> {
  if (filter.department === undefined) return await listWorkerRows(db, filter, null, filter);
  const recursive = filter.recursive && !filter.no_recursive;
  const ids = new Set<string>();
  for (const ref of new Set(filter.department)) {
    const department = await findDepartmentRef(db, ref);
    if (department === null) continue;
    const meant = recursive ? await listDescendantIds(db, department.id) : [department.id];
    for (const id of meant) ids.add(id);
  }
  return await listWorkerRows(db, filter, [...ids], filter);
}

export async function getWorker(deps: Deps<"db" | "engines" | "paths">, call: Call, id: string) {
  return { json: hideSecrets(call, await requireWorker(deps, id)) };
}

async function requireWorker(
  { db, ...deps }: Deps<"db" | "engines" | "paths">,
  id: string,
): Promise<Json<Worker>> {
  // Programs read the same worker repeatedly, and every read locks and unlocks the database file.
  const read = async () => {
    const json = await findWorkerJson(db, id);
    return json === null ? null : await markUnavailable(deps, json);
  };
  return requireFound(
    await db.readCached(`worker ${id}`, read, (found) => found?.length ?? 0),
    "worker",
    id,
  );
}

/** Updates a worker. Throws `invalid_request`, `not_found` or `forbidden`. */
export async function updateWorker(
  deps: Deps<"db" | "clock" | "engines" | "gateways" | "paths" | "isolation" | "skills">,
  call: Call,
  id: string,
  input: WorkerUpdate,
): Promise<Answer<Worker>> {
  await changeWorker(deps, call, id, input);
  const answer = { json: hideSecrets(call, await requireWorker(deps, id)) };
  return { ...answer, ...await findWarning(deps, answer, input.scopes) };
}

async function changeWorker(
  deps: Deps<"db" | "clock" | "engines" | "gateways" | "paths" | "isolation" | "skills">,
  call: Call,
  id: string,
  input: WorkerUpdate,
): Promise<void> {
  const { db, clock, engines, gateways, paths } = deps;
  const worker = requireFound(await findWorker(db, id), "worker", id);
  const { skills: sources, ...change }: RequestedChange = findChanges(call, worker, input);
  checkAuthority(call.caller, [...Object.keys(change), ...(sources === undefined ? [] : ["skills"])]);
  if (change.scopes !== undefined) checkGrant(call.caller, change.scopes, worker.scopes);
  checkEngines(engines, { ...change, runs_on: change.runs_on ?? worker.runs_on });
  // A worker that returns to this machine needs an engine of this machine.
  if (change.runs_on !== undefined) {
    checkEngines(engines, { engine: change.engine ?? worker.engine, runs_on: change.runs_on });
  }
  if (change.gateways !== undefined) checkGateways({ gateways }, call, change.gateways);
  const engine = change.engine ?? worker.engine;
  await checkEnv({ db, engines }, call, {
    ...{ workerId: id, engine },
    ...{ before: worker.env, patch: change.env ?? {} },
  });
  const runs_on = change.runs_on ?? worker.runs_on;
  if (["mcp", "engine", "runs_on"].some((name) => name in change)) {
    await checkMcp({ db, engines }, call, {
      ...{ workerId: id, engine, runs_on, before: worker.mcp, patch: change.mcp ?? {} },
    });
  }
  checkCommands({ call, engines, engine }, { verify: change.verify });
  // Another engine may lack the setting for running commands.
  if (change.engine !== undefined) {
    checkCommands({ call: null, engines, engine }, {
      verify: change.verify === undefined ? worker.verify : change.verify,
    });
  }
  const isOwnDir = worker.work_dir === getOwnWorkDir(paths, id, worker.repo !== null);
  checkElsewhere(call, {
    ...{ changed: Object.keys(change), wanted: { ...worker, ...change } },
    workDir: isOwnDir ? "" : worker.work_dir,
  });
  if (change.isolation !== undefined) checkMaySet(call, "isolation");
  if (["isolation", "engine", "runs_on"].some((name) => name in change)) {
    const { isolation, runs_on, work_dir } = { ...worker, ...change };
    await checkIsolation(deps, { id, isolation, engine, runs_on, workDir: isOwnDir ? null : work_dir });
  }
  await checkRepo(deps, call, {
    ...{ workerId: id, before: worker.repo, workDir: "" },
    repo: change.repo === undefined ? worker.repo : change.repo,
  });
  if (change.fallback !== undefined) checkMaySet(call, "fallback");
  if (sources !== undefined || FALLBACK_FIELDS.some((name) => name in change)) {
    checkFallback(deps, {
      ...worker,
      ...change,
      skills: sources ?? worker.skills,
      env: applyEnvPatch(worker.env, change.env ?? {}),
      mcp: applyMcpPatch(worker.mcp, change.mcp ?? {}),
    });
  }
  const departments = change.departments === undefined
    ? null
    : await resolveDepartments(db, change.departments);
  checkSkills(deps, call, { engine, runs_on, before: worker.skills, wanted: sources ?? worker.skills });
  // Last, because it may take long.
  const row: WorkerChange = sources === undefined
    ? change
    : { ...change, skills: await fetchSkills(deps, sources) };
  // The worker's directory was on a runner.
  if (change.runs_on?.length === 0 && worker.repo === null) {
    await makeWorkDir(resolveWorkDir(worker.work_dir, paths));
  }
  const now = clock.now();
  const statements: Statement[] = [
    ...updateWorkerRow(id, row, departments?.map((department) => department.id) ?? null, now),
    recordBy(call, now, { kind: "worker.updated", worker_id: id, data: { fields: Object.keys(row) } }),
  ];
  // Contexts stay where the directory was, so they cannot continue on another machine.
  if (change.runs_on !== undefined || change.home !== undefined) {
    statements.push(deleteForeignContexts(id, ""), discardWorkerRunContexts(id));
  }
  if (change.engine !== undefined) {
    statements.push(deleteForeignContexts(id, engines.find(change.engine)?.name ?? change.engine));
  }
  await db.writeOr(statements, () => notFound("worker", id));
  await endOutdatedProcesses(engines, id, row);
}

// The fields that decide whether another engine can replace the worker's.
const FALLBACK_FIELDS = ["fallback", "engine", "isolation", "runs_on", "verify", "env", "mcp"];

type RequestedChange = Omit<WorkerChange, "skills"> & {
  departments?: string[];
  work_dir?: never;
  skills?: readonly SkillSource[];
};

// A client can send back what GET returned, so an equal value is no change.
function findChanges(
  call: Call,
  worker: Worker,
  input: WorkerUpdate,
): RequestedChange {
  if (input.work_dir !== undefined && input.work_dir !== worker.work_dir) {
    throw invalid(
      "work_dir",
      "cannot be changed, because the contexts of agents belong to the directory. Create another worker.",
    );
  }
  const {
    id: _id,
    status: _status,
    created_at: _created,
    updated_at: _updated,
    work_dir: _dir,
    home,
    env,
    mcp,
    skills,
    isolation_effective: _effective,
    ...rest
  } = input;
  const fields = rest.repo === undefined ? rest : { ...rest, repo: resolveRepo(worker.repo, rest.repo) };
  const patch = findEnvPatch(call, worker.env, env ?? {});
  const mcpPatch = findMcpPatch(call, worker.mcp, mcp ?? {});
  const before = { ...worker, departments: worker.departments.map((department) => department.id) };
  const names = new Set<string>(listChangedFields(before, fields));
  return {
    ...Object.fromEntries(Object.entries(fields).filter(([name]) => names.has(name))),
    ...(home === undefined || !setsHome(worker.home, home) ? {} : { home }),
    ...(Object.keys(patch).length === 0 ? {} : { env: patch }),
    ...(Object.keys(mcpPatch).length === 0 ? {} : { mcp: mcpPatch }),
    ...(skills === undefined || hasSources(worker.skills, skills) ? {} : { skills }),
  };
}

function listChangedFields(before: object, fields: object): string[] {
  const values = new Map<string, unknown>(Object.entries(before));
  return Object.entries(fields).flatMap(([name, value]) =>
    value !== undefined && JSON.stringify(value) !== JSON.stringify(values.get(name)) ? [name] : []
  );
}

// Only an operator decides what a worker can reach (contract 2.9).
function checkAuthority(caller: Caller, fields: readonly string[]): void {
  const field = fields.find((name) => !(RUN_FIELDS as readonly string[]).includes(name));
  if (caller.run === null || field === undefined) return;
  throw new ServiceError("forbidden", `Cannot set ${field}: only an operator can, not a run token`);
}

/** Throws `forbidden` when the caller lacks a new scope of a worker (contract 2.9). */
export function checkGrant(caller: Caller, scopes: readonly string[], had: readonly string[] = []): void {
  const wanted = scopes.length === 0 && caller.run !== null ? WORKER_SCOPES_DEFAULT : scopes;
  const missing = wanted.find((entry) => !grants(caller.scopes, entry) && !grants(had, entry));
  if (missing === undefined) return;
  throw new ServiceError(
    "forbidden",
    `Cannot give a worker the scope ${missing}: ${
      caller.run === null ? "you do" : "this token does"
    } not hold it`,
    { required_scope: missing },
  );
}

async function resolveDepartments(db: Database, keys: string[]): Promise<{ id: string; name: string }[]> {
  const found = new Map<string, { id: string; name: string }>();
  for (const [index, key] of keys.entries()) {
    const department = await findDepartmentRef(db, key);
    if (department === null) {
      throw invalid(`departments.${index}`, `no department has the id or name ${JSON.stringify(key)}`);
    }
    found.set(department.id, department);
  }
  return [...found.values()];
}

function omitEmpty(args: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(args).filter(([, value]) => value !== ""));
}
