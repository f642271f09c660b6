import { getOwnWorkDir } from "../../base/paths.ts";
import { createId } from "../../base/id.ts";
import { BUDGETS_MAX } from "../../domain/workers/budget.ts";
import { DEPARTMENTS_MAX } from "../../domain/workers/department.ts";
import type { Fleet, PresentObject } from "../../domain/workers/fleet.ts";
import type { PlannedChange } from "../../domain/workers/fleet_plan.ts";
import { GLOBAL_SCOPE, MEMORY_ENTRIES_MAX } from "../../domain/workers/memory.ts";
import type { McpServers } from "../../domain/workers/mcp_server.ts";
import type { Skill } from "../../domain/workers/skill.ts";
import { normalizeName } from "../../domain/call/name_key.ts";
import { WEBHOOKS_MAX } from "../../domain/system/webhook.ts";
import { deleteBudget, insertBudget, updateBudget } from "../../store/workers/budget.ts";
import type { Statement } from "../../store/db/database.ts";
import { deleteDepartment, insertDepartment, updateDepartment } from "../../store/workers/department.ts";
import { assignToFleet } from "../../store/workers/fleet.ts";
import { record } from "../../store/events/journal.ts";
import { deleteMemory, storeMemory } from "../../store/workers/memory.ts";
import { deleteForeignContexts, discardWorkerRunContexts } from "../../store/chat/conversation_context.ts";
import { deleteWebhook, insertWebhook, updateWebhook } from "../../store/events/webhook.ts";
import { insertWorker, updateWorker, type WorkerChange } from "../../store/workers/worker.ts";
import type { Deps } from "../call/services.ts";
import { generateWebhookSecret, getOrigin } from "../system/webhook.ts";
import { endOutdatedProcesses } from "./engine.ts";
import { buildMcpPatch } from "./mcp.ts";
import { buildEnvPatch, grantNamedSecrets } from "./worker_env.ts";
import { buildWorkerDeletion, checkPushed, endWorkerRuns } from "./worker_deletion.ts";
import { buildScriptSessionKey } from "../../domain/chat/message.ts";
import type { ScheduleOptions } from "../../domain/work/schedule.ts";
import { buildNewTask } from "../../domain/work/task.ts";
import { findNextRunAt, planTask } from "../../domain/work/task_plan.ts";
import { cancelOccurrence } from "../../store/work/occurrence.ts";
import { type ScheduleChange, updateSchedule } from "../../store/work/schedule.ts";
import { insertTask } from "../../store/work/task.ts";
import { cancelTask } from "../../store/work/task_transitions.ts";

/** The statements and follow-up work of a plan. */
interface PlanWork {
  statements: Statement[];
  /** Directories to create before the commit, each with the worker that it belongs to. */
  workDirs: { worker: string; path: string; isOwn: boolean }[];
  /** Work after the commit, in this order. */
  afterwards: (() => Promise<void>)[];
}

/** The skills of workers whose skills change, by the name of the worker. */
export type FleetSkills = Map<string, Skill[]>;

interface Context {
  fleet: string;
  actor: string;
  now: number;
  skills: FleetSkills;
}

/** Ids by name, including new objects. */
interface Ids {
  department: Map<string, string>;
  worker: Map<string, string>;
}

type ChangeDeps = Deps<"db" | "engines" | "paths" | "interruptRun" | "timeZone">;

/** Builds the statements of a plan, ordered so that every reference exists. */
export async function buildPlanWork(
  deps: ChangeDeps,
  changes: readonly PlannedChange[],
  present: readonly PresentObject[],
  context: Context,
): Promise<PlanWork> {
  const work: PlanWork = { statements: [], workDirs: [], afterwards: [] };
  const findIds = (kind: PresentObject["kind"]) =>
    new Map(present.flatMap((one) => one.kind === kind ? [[normalizeName(one.name), one.id] as const] : []));
  const ids: Ids = { department: findIds("department"), worker: findIds("worker") };
  const listChanges = (kind: PlannedChange["kind"]) => changes.filter((one) => one.kind === kind);
  changeDepartments(work, listChanges("department"), ids.department, context);
  const workers = listChanges("worker");
  for (const change of workers.filter(({ action }) => action !== "delete")) {
    changeWorker(work, deps, change, { ...context, ids });
  }
  for (const change of listChanges("schedule")) {
    work.statements.push(
      ...buildScheduleStatements(deps.timeZone, change, { ...context, workers: ids.worker }),
    );
  }
  // A schedule may have moved from a deleted worker to another one.
  for (const { present } of workers.filter(({ action }) => action === "delete")) {
    if (present === null) continue;
    await checkPushed(deps.db, present);
    work.statements.push(...await buildWorkerDeletion(deps.db, present, context.actor, context.now));
    work.afterwards.push(() => endWorkerRuns(deps, present.id));
  }
  // No department that stays is below a deleted one, so only deleted departments can have deleted parents.
  const deleted = listChanges("department").filter(({ action }) => action === "delete");
  for (const { present } of deleted) {
    work.statements.push(...updateDepartment(present?.id ?? "", { parent_id: null }, context.now));
  }
  for (const { present, name } of deleted) {
    work.statements.push(
      ...deleteDepartment(present?.id ?? ""),
      buildEvent("department.deleted", present?.id ?? "", name, context),
    );
  }
  for (const change of listChanges("budget")) changeBudget(work, change, { ...context, ids });
  for (const change of listChanges("webhook")) changeWebhook(work, change, context);
  for (const change of listChanges("memory")) changeMemory(work, change, context);
  return work;
}

// First creates all new departments and removes the parents of moved ones, then sets the new parents. So no cycle occurs in between.
function changeDepartments(
  { statements }: PlanWork,
  changes: readonly PlannedChange[],
  ids: Map<string, string>,
  context: Context,
): void {
  const { now, fleet } = context;
  const kept = changes.filter(({ action }) => action !== "delete");
  for (const { action, name, present, wanted } of kept) {
    const sort_order = Number(wanted?.fields.sort_order);
    const id = present?.id ?? createId();
    ids.set(normalizeName(name), id);
    if (action === "create") {
      const row = {
        id,
        name,
        parent_id: null,
        sort_order,
        worker_count: 0,
        created_at: now,
        updated_at: now,
      };
      statements.push(
        ...insertDepartment(row, DEPARTMENTS_MAX),
        buildEvent("department.created", id, name, context),
      );
    } else if (action === "update") {
      statements.push(
        ...updateDepartment(id, { name, sort_order, parent_id: null }, now),
        buildEvent("department.updated", id, name, context),
      );
    }
    statements.push(assignToFleet("department", id, fleet));
  }
  for (const { action, name, wanted } of kept) {
    const parent = String(wanted?.fields.parent ?? "");
    if (action === "adopt" || parent === "") continue;
    const change = { parent_id: ids.get(normalizeName(parent)) ?? null };
    statements.push(...updateDepartment(ids.get(normalizeName(name)) ?? "", change, now));
  }
}

function changeWorker(
  { statements, workDirs, afterwards }: PlanWork,
  deps: ChangeDeps,
  { action, name, present, wanted, fields: changed }: PlannedChange,
  context: Context & { ids: Ids },
): void {
  const { fleet, actor, now } = context;
  const skills = context.skills.get(name) ?? [];
  const id = present?.id ?? createId();
  context.ids.worker.set(normalizeName(name), id);
  const fields = wanted?.fields as Fleet["workers"][number];
  const departmentIds = fields.departments.flatMap((one) =>
    context.ids.department.get(normalizeName(one)) ?? []
  );
  if (action === "create") {
    const work_dir = fields.work_dir || getOwnWorkDir(deps.paths, id, fields.repo !== null);
    statements.push(
      ...insertWorker(
        { ...fields, id, name, skills, work_dir, created_at: now, updated_at: now },
        departmentIds,
      ),
      ...grantNamedSecrets(actor, id, fields, now),
      record(now, { kind: "worker.created", worker_id: id, actor, data: { name } }),
    );
    // A runner creates its worker's directory itself.
    if (fields.runs_on.length === 0) {
      workDirs.push({ worker: name, path: work_dir, isOwn: fields.work_dir === "" });
    }
  } else if (action === "update") {
    const names = changed.map((one) => one.name);
    const change = Object.fromEntries(
      names.map((one) => [one, { ...fields, name, skills }[one as "name"]]),
    ) as WorkerChange;
    if (change.env !== undefined) {
      change.env = buildEnvPatch(present?.fields.env as Record<string, string>, fields.env);
    }
    if (change.mcp !== undefined) {
      change.mcp = buildMcpPatch(present?.fields.mcp as McpServers, fields.mcp);
    }
    // An update merges the arguments by engine, so this clears the arguments of engines that the file omits.
    const before = present?.fields.engine_args as Record<string, string>;
    if (change.engine_args !== undefined) {
      change.engine_args = {
        ...Object.fromEntries(Object.keys(before).map((one) => [one, ""])),
        ...change.engine_args,
      };
    }
    statements.push(
      ...updateWorker(id, change, names.includes("departments") ? departmentIds : null, now),
      record(now, { kind: "worker.updated", worker_id: id, actor, data: { fields: names } }),
    );
    afterwards.push(() => endOutdatedProcesses(deps.engines, id, change));
    if (change.runs_on?.length === 0) {
      const path = fields.work_dir || getOwnWorkDir(deps.paths, id, fields.repo !== null);
      workDirs.push({ worker: name, path, isOwn: false });
    }
    if (change.runs_on !== undefined || change.home !== undefined) {
      statements.push(deleteForeignContexts(id, ""), discardWorkerRunContexts(id));
    }
    if (change.engine !== undefined) {
      statements.push(deleteForeignContexts(id, deps.engines.find(change.engine)?.name ?? change.engine));
    }
  }
  statements.push(assignToFleet("worker", id, fleet));
}

function changeBudget(
  { statements }: PlanWork,
  { action, name, present, wanted, fields: changed }: PlannedChange,
  context: Context & { ids: Ids },
): void {
  const { fleet, actor, now, ids } = context;
  const id = present?.id ?? createId();
  const buildEvent = (kind: "budget.created" | "budget.updated" | "budget.deleted") =>
    record(now, { kind, actor, data: { budget_id: id, name } });
  if (action === "delete") {
    statements.push(...deleteBudget(id), buildEvent("budget.deleted"));
    return;
  }
  const wish = wanted?.fields as Omit<Fleet["budgets"][number], "name">;
  const fields = { ...wish, name, target: findTarget(wish.target, ids) };
  if (action === "create") {
    const row = { ...fields, id, lifted_until: null, created_at: now, updated_at: now };
    statements.push(...insertBudget(row, BUDGETS_MAX), buildEvent("budget.created"));
  } else if (action === "update") {
    const names = changed.map((one) => one.name) as (keyof typeof fields)[];
    const change = Object.fromEntries(names.map((one) => [one, fields[one]]));
    statements.push(...updateBudget(id, change, now), buildEvent("budget.updated"));
  }
  statements.push(assignToFleet("budget", id, fleet));
}

function changeWebhook(
  { statements }: PlanWork,
  { action, name, present, wanted, fields: changed }: PlannedChange,
  { fleet, actor, now }: Context,
): void {
  const id = present?.id ?? createId();
  const buildEvent = (kind: "webhook.created" | "webhook.updated" | "webhook.deleted", data: object = {}) =>
    record(now, { kind, actor, data: { webhook_id: id, name, ...data } });
  if (action === "delete") {
    statements.push(...deleteWebhook(id), buildEvent("webhook.deleted"));
    return;
  }
  const fields = wanted?.fields as Omit<Fleet["webhooks"][number], "name">;
  if (action === "create") {
    const row = {
      ...fields,
      id,
      name,
      secret: generateWebhookSecret(),
      origin: "api" as const,
      allow_private: false,
    };
    const data = { url: getOrigin(fields.url), events: fields.events };
    statements.push(...insertWebhook(row, WEBHOOKS_MAX, now), buildEvent("webhook.created", data));
  } else if (action === "update") {
    const data = { changed: changed.map((one) => one.name) };
    statements.push(...updateWebhook(id, { ...fields, name }, now), buildEvent("webhook.updated", data));
  }
  statements.push(assignToFleet("webhook", id, fleet));
}

function findTarget(target: string, ids: Ids): string {
  const [, kind, name = ""] = /^(worker|department):(.*)$/s.exec(target) ?? [];
  if (kind === undefined) return target;
  return `${kind}:${ids[kind as keyof Ids].get(normalizeName(name)) ?? name}`;
}

function changeMemory(
  { statements }: PlanWork,
  { action, name, wanted }: PlannedChange,
  context: Context,
): void {
  const { fleet, actor, now } = context;
  const data = { scope: GLOBAL_SCOPE, key: name };
  if (action === "delete") {
    statements.push(
      ...deleteMemory(GLOBAL_SCOPE, name),
      record(now, { kind: "memory.deleted", actor, data }),
    );
    return;
  }
  if (action !== "adopt") {
    const entry = { ...data, value: String(wanted?.fields.value), updated_at: now };
    statements.push(
      ...storeMemory(entry, MEMORY_ENTRIES_MAX),
      record(now, { kind: "memory.saved", actor, data }),
    );
  }
  statements.push(assignToFleet("memory", name, fleet));
}

function buildEvent(
  kind: "department.created" | "department.updated" | "department.deleted",
  id: string,
  name: string,
  { actor, now }: Context,
): Statement {
  return record(now, { kind, actor, data: { department_id: id, name } });
}

interface WantedSchedule {
  worker: string;
  instruction: string;
  cron: string;
  time_zone: string;
}

interface ScheduleContext {
  fleet: string;
  actor: string;
  now: number;
  /** Worker ids by normalizeName(). */
  workers: ReadonlyMap<string, string>;
}

/** Builds the statements of one schedule change. `timeZone` is the default zone. */
function buildScheduleStatements(
  timeZone: string,
  { action, name, present, wanted, fields: changed }: PlannedChange,
  { fleet, actor, now, workers }: ScheduleContext,
): Statement[] {
  const id = present?.id ?? createId();
  if (action === "delete") {
    return [
      ...cancelTask(id, `left out of the fleet by ${actor}`, now),
      cancelOccurrence(id, now),
      record(now, { kind: "task.cancelled", task_id: id, actor, data: { name } }),
    ];
  }
  const { worker, ...fields } = wanted?.fields as unknown as ScheduleOptions & WantedSchedule;
  const worker_id = workers.get(normalizeName(worker)) ?? "";
  const statements: Statement[] = [];
  if (action === "create") {
    const message_id = `fleet-${id}`;
    const origin = { message_id, session_key: buildScriptSessionKey(message_id) };
    const plan = planTask({ type: "scheduled", ...fields }, now, timeZone);
    const task = buildNewTask(
      { ...fields, ...origin, id, name, worker_id, type: "scheduled", created_by: actor },
      plan,
      now,
    );
    statements.push(
      ...insertTask({ ...task, due_at: null, parent_task_id: null, depth: 0 }),
      record(now, {
        kind: "task.created",
        ...origin,
        worker_id,
        task_id: id,
        actor,
        data: { type: "scheduled", name },
      }),
    );
  } else if (action === "update") {
    const names = changed.map((one) => one.name === "worker" ? "worker_id" : one.name);
    const all: Record<string, unknown> = { ...fields, name, worker_id };
    // Changed times and the end of a pause change the next run, which never catches up.
    const next = findNextRunAt(fields, timeZone, now);
    const times = names.some((one) => ["cron", "time_zone", "until", "paused"].includes(one))
      ? { next_run_at: next }
      : {};
    const resumed = names.includes("paused") && !fields.paused ? { failures_in_row: 0, reason: "" } : {};
    const paused = names.includes("paused") && fields.paused ? { queued_at: null } : {};
    const given = Object.fromEntries(names.map((one) => [one, all[one]]));
    const change = { ...given, ...times, ...resumed, ...paused };
    statements.push(
      ...updateSchedule(id, change as ScheduleChange, {}, now),
      record(now, { kind: "task.updated", worker_id, task_id: id, actor, data: { fields: names } }),
    );
  }
  return [...statements, assignToFleet("schedule", id, fleet)];
}
