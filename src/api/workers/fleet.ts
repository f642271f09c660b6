import { digest } from "../../base/bytes.ts";
import { faultPoint } from "../../base/fault_point.ts";
import { conflict, invalid, ServiceError } from "../../domain/call/error.ts";
import {
  type Fleet,
  type FleetApply,
  type FleetExport,
  type FleetPlan,
  type FleetPlanInput,
  type PresentObject,
} from "../../domain/workers/fleet.ts";
import {
  findCycle,
  planFleet,
  type PlannedChange,
  type UnhashedPlan,
} from "../../domain/workers/fleet_plan.ts";
import type { Repo } from "../../domain/workers/repo.ts";
import type { SkillSource } from "../../domain/workers/skill.ts";
import type { McpServers } from "../../domain/workers/mcp_server.ts";
import { WORKER_DEFAULTS } from "../../domain/workers/worker.ts";
import { listWorkerSecrets } from "../../domain/workers/worker_secrets.ts";
import { findCronFault } from "../../domain/work/cron.ts";
import { normalizeName } from "../../domain/call/name_key.ts";
import { checkFieldsOfType, findNextRunAt, resolveTimeZone } from "../../domain/work/task_plan.ts";
import { guardFleetState, readFleetState } from "../../store/workers/fleet.ts";
import { record } from "../../store/events/journal.ts";
import { findWebhook } from "../../store/events/webhook.ts";
import { type Answer, answer } from "../call/answer.ts";
import type { Call } from "../call/call.ts";
import { checkFallback } from "./fallback.ts";
import { checkGatewayNames } from "./gateway.ts";
import { checkCommands, checkMaySet } from "../work/task_commands.ts";
import { checkEngines } from "./engine.ts";
import { buildPlanWork, type FleetSkills } from "./fleet_changes.ts";
import { buildFleetExport, listPresent, normalizeFleet } from "./fleet_present.ts";
import type { Deps } from "../call/services.ts";
import { checkElsewhere } from "./elsewhere.ts";
import { checkIsolation } from "./isolation.ts";
import { checkRepo } from "./repo.ts";
import { checkSkills, fetchSkills, hasSources } from "./skills.ts";
import { buildMcpPatch, checkMcp } from "./mcp.ts";
import { makeWorkDir, resolveWorkDir } from "./work_dir.ts";
import { checkGrant } from "./worker.ts";
import { buildEnvPatch, checkEnv, seesSecretNames } from "./worker_env.ts";

type PlanDeps = Deps<"db" | "clock" | "engines" | "gateways" | "paths" | "skills" | "timeZone" | "isolation">;

// Another request may change something between the plan and its commit.
const TRIES = 5;

/** Exports the fleet by name and without defaults. Throws `conflict` for two objects with one name. */
export async function exportFleet(deps: Deps<"db" | "paths">, call: Call): Promise<Answer<FleetExport>> {
  const present = await listPresent(deps);
  checkMaySeeEnvs(call, present);
  const twice = [...Map.groupBy(present, ({ kind, name }) => `${kind} ${normalizeName(name)}`).values()]
    .find((found) => found.length > 1 && found[0]?.kind !== "memory");
  if (twice !== undefined) {
    throw conflict(
      `Cannot export: ${twice.length} ${twice[0]?.kind}s are called ${twice[0]?.name}. Rename all but one.`,
    );
  }
  return answer(buildFleetExport(present));
}

/** Plans the changes of an apply, with its conflicts (contract 16). */
export async function previewFleet(
  deps: PlanDeps,
  call: Call,
  input: FleetPlanInput,
): Promise<Answer<FleetPlan>> {
  return answer(buildPlan((await plan(deps, call, input)).planned));
}

/**
 * Applies a fleet file in one batch, all or nothing, and returns the changes. Throws `invalid_request`, and `conflict`
 * for ambiguous names, objects of another fleet and changes since `plan`.
 */
export async function applyFleet(
  deps: PlanDeps & Deps<"interruptRun">,
  call: Call,
  input: FleetApply,
): Promise<Answer<FleetPlan>> {
  for (let tried = 1; tried <= TRIES; tried++) {
    const state = await readFleetState(deps.db);
    const { planned, present, skills } = await plan(deps, call, input);
    const shown = buildPlan(planned);
    if (input.plan !== undefined && input.plan !== shown.hash) {
      throw conflict("Cannot apply: the fleet changed after the plan. Plan again.");
    }
    const [first] = planned.conflicts;
    if (first !== undefined) throw buildConflict(planned.conflicts);
    if (planned.changes.length === 0) return answer(shown);
    const now = deps.clock.now();
    const actor = call.caller.subject;
    const work = await buildPlanWork(deps, planned.changes, present, {
      fleet: input.fleet.fleet,
      actor,
      now,
      skills,
    });
    await makeWorkDirs(input.fleet, work.workDirs);
    let won = false;
    try {
      faultPoint("accept.pre-commit");
      ({ won } = await deps.db.write([
        ...guardFleetState(state),
        ...work.statements,
        record(now, {
          kind: "fleet.applied",
          actor,
          data: { fleet: input.fleet.fleet, changes: planned.changes.length },
        }),
      ]));
    } finally {
      if (!won) await removeOwnDirs(work.workDirs);
    }
    if (!won) continue;
    faultPoint("accept.post-commit");
    // A crash after this point loses nothing: the next start of the service ends orphan runs.
    for (const end of work.afterwards) await end();
    return answer(shown);
  }
  throw conflict("Cannot apply: other requests keep changing the fleet. Try again.");
}

type WorkDirs = Awaited<ReturnType<typeof buildPlanWork>>["workDirs"];

async function makeWorkDirs({ workers }: Fleet, workDirs: WorkDirs): Promise<void> {
  const positions = new Map(workers.map(({ name }, index) => [normalizeName(name), index]));
  try {
    for (const { worker, path } of workDirs) {
      await makeWorkDir(path, `fleet.workers.${positions.get(normalizeName(worker))}.work_dir`);
    }
  } catch (error) {
    await removeOwnDirs(workDirs);
    throw error;
  }
}

// Removes only the default directories of these workers. A directory that the file names may belong to other programs.
async function removeOwnDirs(workDirs: WorkDirs): Promise<void> {
  await Promise.all(
    workDirs.filter(({ isOwn }) => isOwn).map(({ path }) => Deno.remove(path).catch(() => {})),
  );
}

async function plan(
  deps: PlanDeps,
  call: Call,
  { fleet, prune, adopt }: FleetPlanInput,
): Promise<{ planned: UnhashedPlan; present: PresentObject[]; skills: FleetSkills }> {
  checkEngineNames(deps, fleet);
  checkSchedules(deps, fleet);
  const present = await listPresent(deps);
  checkMaySeeEnvs(call, present);
  checkCommandEngines(deps, fleet, present);
  await checkWebhookNames(deps, fleet);
  checkCircle(fleet, present);
  const planned = planFleet(normalizeFleet(deps, fleet), present, { fleet: fleet.fleet, prune, adopt });
  checkReferences(fleet, present, planned);
  checkMayChange(call, planned);
  await checkEnvs(deps, call, planned);
  await checkBoxes(deps, fleet, planned);
  return { planned, present, skills: await fetchFleetSkills(deps, call, planned) };
}

/** Fetches the skills of workers that change, by the name of the worker. */
async function fetchFleetSkills(deps: PlanDeps, call: Call, { changes }: UnhashedPlan): Promise<FleetSkills> {
  const skills: FleetSkills = new Map();
  for (const { kind, name, present, wanted } of changes) {
    if (kind !== "worker" || wanted === null) continue;
    const { engine, runs_on, skills: sources } = wanted.fields as Fleet["workers"][number];
    const before = (present?.fields.skills ?? []) as SkillSource[];
    const path = `fleet.workers.${name}.`;
    checkSkills(deps, call, { engine, runs_on, before, wanted: sources, path });
    if (!hasSources(before, sources)) skills.set(name, await fetchSkills(deps, sources, path));
  }
  return skills;
}

const BOX_FIELDS = ["isolation", "engine", "runs_on", "work_dir"];

async function checkBoxes(deps: PlanDeps, fleet: Fleet, { changes }: UnhashedPlan): Promise<void> {
  for (const { kind, action, name, present, fields } of changes) {
    if (kind !== "worker" || action === "delete" || !fields.some((one) => BOX_FIELDS.includes(one.name))) {
      continue;
    }
    const index = fleet.workers.findIndex((one) => normalizeName(one.name) === normalizeName(name));
    const worker = fleet.workers[index];
    if (worker === undefined) continue;
    const { isolation, engine, runs_on, work_dir } = worker;
    const workDir = work_dir === "" || runs_on.length > 0 ? null : resolveWorkDir(work_dir, deps.paths);
    await checkIsolation(
      deps,
      { id: present?.id ?? "", isolation, engine, runs_on, workDir },
      `fleet.workers.${index}.`,
    );
  }
}

function checkEngineNames(deps: Deps<"engines" | "gateways" | "isolation">, fleet: Fleet): void {
  const { engines, gateways } = deps;
  for (const [index, worker] of fleet.workers.entries()) {
    checkEngines(engines, worker, `fleet.workers.${index}.`);
    checkCommands({ call: null, engines, engine: worker.engine }, { verify: worker.verify });
    checkGatewayNames({ gateways }, worker.gateways, `fleet.workers.${index}.gateways`);
    checkFallback(deps, worker, `fleet.workers.${index}.`);
  }
  for (const [index, { target }] of fleet.budgets.entries()) {
    const engine = /^engine:(.*)$/s.exec(target)?.[1];
    if (engine !== undefined) checkEngines(engines, { engine }, `fleet.budgets.${index}.target, `);
  }
}

function checkSchedules({ clock, timeZone }: Deps<"clock" | "timeZone">, fleet: Fleet): void {
  const now = clock.now();
  for (const [index, { cron, time_zone = "", until = null }] of fleet.schedules.entries()) {
    const path = `fleet.schedules.${index}`;
    checkFieldsOfType("scheduled", fleet.schedules[index] ?? {});
    const fault = findCronFault(cron, resolveTimeZone(time_zone, timeZone), now);
    if (fault !== null) throw invalid(`${path}.cron`, fault);
    if (findNextRunAt({ cron, time_zone, until }, timeZone, now) === null) {
      throw invalid(`${path}.until`, "no time of the cron falls before it");
    }
  }
}

// The worker's engine matters, and the file need not contain the worker.
function checkCommandEngines(
  { engines }: Deps<"engines">,
  fleet: Fleet,
  present: readonly PresentObject[],
): void {
  const engineOf = new Map([
    ...present.filter(({ kind }) => kind === "worker")
      .map(({ name, fields }) => [normalizeName(name), String(fields.engine)] as const),
    ...fleet.workers.map(({ name, engine }) => [normalizeName(name), engine] as const),
  ]);
  for (const { worker, gate, verify } of fleet.schedules) {
    checkCommands({ call: null, engines, engine: engineOf.get(normalizeName(worker)) ?? "" }, {
      gate,
      verify,
    });
  }
}

async function checkWebhookNames({ db }: Deps<"db">, fleet: Fleet): Promise<void> {
  for (const [index, { name }] of fleet.webhooks.entries()) {
    if ((await findWebhook(db, name))?.origin !== "config") continue;
    throw invalid(
      `fleet.webhooks.${index}.name`,
      "a webhook of the configuration has this name. Change it there.",
    );
  }
}

// An omitted command is removed. A caller without the scope may apply a file that changes no command.
function checkMayChange(call: Call, { changes }: UnhashedPlan): void {
  for (const { name, before, after } of changes.flatMap(({ fields }) => fields)) {
    if ((name === "gate" || name === "verify") && (before ?? after ?? null) !== null) checkMaySet(call, name);
    if (name === "gateways" && JSON.stringify(before ?? []) !== JSON.stringify(after ?? [])) {
      checkMaySet(call, name);
    }
    if (name === "isolation" && JSON.stringify(before ?? null) !== JSON.stringify(after ?? null)) {
      checkMaySet(call, name);
    }
    if (name === "fallback" && (before ?? false) !== (after ?? false)) checkMaySet(call, name);
    // Only workers have scopes.
    if (name === "scopes") checkGrant(call.caller, (after ?? []) as string[], (before ?? []) as string[]);
  }
}

// A plan shows the fields before and after, and a file with hidden names could not be applied.
function checkMaySeeEnvs(call: Call, present: readonly PresentObject[]): void {
  if (seesSecretNames(call)) return;
  const worker = present.find(({ kind, fields }) =>
    kind === "worker" && listWorkerSecrets(fields as Fleet["workers"][number]).length > 0
  );
  if (worker === undefined) return;
  throw new ServiceError(
    "forbidden",
    `Cannot read the fleet: the worker ${worker.name} uses secrets, which requires the scopes write:workers and write:commands`,
    { required_scope: "write:commands" },
  );
}

async function checkEnvs(deps: PlanDeps, call: Call, { changes }: UnhashedPlan): Promise<void> {
  for (const { kind, name, present, wanted, fields } of changes) {
    if (kind !== "worker" || wanted === null) continue;
    const worker = wanted.fields as Fleet["workers"][number];
    const { env, mcp, repo, engine, runs_on, work_dir } = worker;
    const before = (present?.fields.env ?? {}) as Record<string, string>;
    const had = (present?.fields.mcp ?? {}) as McpServers;
    const place = { workerId: present?.id ?? null, engine, path: `fleet.workers.${name}.` };
    const changed = fields.filter(isChanged).map((field) => field.name);
    checkElsewhere(call, { changed, wanted: worker, workDir: work_dir, path: place.path });
    await checkEnv(deps, call, { ...place, before, patch: buildEnvPatch(before, env) });
    await checkMcp(deps, call, { ...place, runs_on, before: had, patch: buildMcpPatch(had, mcp) });
    await checkRepo(deps, call, {
      ...{ workerId: place.workerId, before: (present?.fields.repo ?? null) as Repo | null, repo },
      ...{ workDir: repo === null ? "" : work_dir, path: place.path },
    });
  }
}

// A new worker has no value before.
function isChanged({ name, before, after }: PlannedChange["fields"][number]): boolean {
  const fallback = WORKER_DEFAULTS[name as keyof typeof WORKER_DEFAULTS];
  return JSON.stringify(before ?? fallback) !== JSON.stringify(after ?? fallback);
}

// Includes departments that the file omits.
function checkCircle(fleet: Fleet, present: readonly PresentObject[]): void {
  const parents = new Map<string, string>();
  const setParent = (name: string, parent: unknown) => {
    if (parent === "") parents.delete(normalizeName(name));
    else parents.set(normalizeName(name), normalizeName(String(parent)));
  };
  for (const { kind, name, fields } of present) if (kind === "department") setParent(name, fields.parent);
  for (const { name, parent } of fleet.departments) setParent(name, parent);
  const circle = findCycle(parents);
  if (circle === null) return;
  throw invalid("fleet.departments", `form a cycle: ${circle.join(" > ")}`);
}

// A name must be in the file, or belong to an object that stays.
function checkReferences(fleet: Fleet, present: readonly PresentObject[], { changes }: UnhashedPlan): void {
  const gone = new Set(changes.flatMap((one) => one.action === "delete" ? [one.present?.id] : []));
  const listNames = (kind: "department" | "worker", wanted: readonly { name: string }[]) =>
    new Set([
      ...wanted.map(({ name }) => normalizeName(name)),
      ...present.filter((one) => one.kind === kind && !gone.has(one.id)).map(({ name }) =>
        normalizeName(name)
      ),
    ]);
  const names = {
    department: listNames("department", fleet.departments),
    worker: listNames("worker", fleet.workers),
  };
  const checkName = (path: string, kind: keyof typeof names, name: string) => {
    if (!names[kind].has(normalizeName(name))) {
      throw invalid(path, `no ${kind} is called ${JSON.stringify(name)}`);
    }
  };
  for (const [index, { parent }] of fleet.departments.entries()) {
    if (parent !== "") checkName(`fleet.departments.${index}.parent`, "department", parent);
  }
  for (const [index, worker] of fleet.workers.entries()) {
    for (const [at, name] of worker.departments.entries()) {
      checkName(`fleet.workers.${index}.departments.${at}`, "department", name);
    }
  }
  for (const [index, { worker }] of fleet.schedules.entries()) {
    checkName(`fleet.schedules.${index}.worker`, "worker", worker);
  }
  for (const [index, { target }] of fleet.budgets.entries()) {
    const [, kind, name = ""] = /^(worker|department):(.*)$/s.exec(target) ?? [];
    if (kind !== undefined) checkName(`fleet.budgets.${index}.target`, kind as keyof typeof names, name);
  }
  const moved = changes.find(({ kind, action, fields }) =>
    kind === "worker" && action === "update" && fields.some(({ name }) => name === "work_dir")
  );
  if (moved !== undefined) {
    const index = fleet.workers.findIndex(({ name }) => normalizeName(name) === normalizeName(moved.name));
    throw invalid(
      `fleet.workers.${index}.work_dir`,
      "cannot be changed, because the contexts of agents belong to the directory",
    );
  }
}

function buildPlan({ changes, conflicts }: UnhashedPlan): FleetPlan {
  const shown = changes.map(({ action, kind, name, fields }) => ({ action, kind, name, fields }));
  return { hash: digest(JSON.stringify([shown, conflicts])), changes: shown, conflicts };
}

const CONFLICTS_SHOWN = 5;

function buildConflict(conflicts: FleetPlan["conflicts"]): ServiceError {
  const words = conflicts.slice(0, CONFLICTS_SHOWN).map(({ kind, name, detail }) =>
    `${kind} ${name}: ${detail}`
  );
  const more = conflicts.length > CONFLICTS_SHOWN ? `, and ${conflicts.length - CONFLICTS_SHOWN} more` : "";
  return conflict(`Cannot apply: ${words.join("; ")}${more}. Nothing was changed.`);
}
