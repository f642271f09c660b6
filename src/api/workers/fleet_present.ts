import { type DataPaths, getOwnWorkDir } from "../../base/paths.ts";
import { budgetCreateSchema, type StoredBudget } from "../../domain/workers/budget.ts";
import type { Department } from "../../domain/workers/department.ts";
import { ServiceError } from "../../domain/call/error.ts";
import {
  type Fleet,
  FLEET_MAX_BYTES,
  type FleetExport,
  type FleetObject,
  fleetSchema,
  type PresentObject,
} from "../../domain/workers/fleet.ts";
import { parseJson } from "../../domain/call/json.ts";
import { GLOBAL_SCOPE, type MemoryEntry } from "../../domain/workers/memory.ts";
import { normalizeName } from "../../domain/call/name_key.ts";
import { type Listing, type Page, PAGE_SIZE_MAX, WORKER_PAGE_SIZE_MAX } from "../../domain/call/page.ts";
import { FLEET_KINDS, type FleetKind } from "../../domain/call/vocabulary.ts";
import { buildDefaultOptions, optionFields } from "../../domain/work/schedule.ts";
import type { Task } from "../../domain/work/task.ts";
import type { Webhook } from "../../domain/system/webhook.ts";
import { NO_HOME } from "../../domain/workers/runner.ts";
import { getSkillSource } from "../../domain/workers/skill.ts";
import { type Worker, workerCreateSchema } from "../../domain/workers/worker.ts";
import { listBudgets } from "../../store/workers/budget.ts";
import type { Database } from "../../store/db/database.ts";
import { listDepartments } from "../../store/workers/department.ts";
import { countFleetBytes, listFleetObjects, listNamedSchedules } from "../../store/workers/fleet.ts";
import { listMemory } from "../../store/workers/memory.ts";
import { listWebhooks } from "../../store/events/webhook.ts";
import { listWorkers } from "../../store/workers/worker.ts";
import type { Deps } from "../call/services.ts";
import { resolveWorkDir } from "./work_dir.ts";

const BUDGET_FIELDS = Object.keys(budgetCreateSchema.shape).filter((name) => name !== "name") as Exclude<
  keyof Fleet["budgets"][number],
  "name"
>[];

const WORKER_FIELDS = Object.keys(workerCreateSchema.shape).filter((name) => name !== "name") as Exclude<
  keyof Fleet["workers"][number],
  "name"
>[];

/** Lists all objects that a fleet can contain, by kind and name. Throws `payload_too_large` above the limit of a file. */
export async function listPresent({ db, paths }: Deps<"db" | "paths">): Promise<PresentObject[]> {
  if (await countFleetBytes(db) > FLEET_MAX_BYTES) {
    throw new ServiceError(
      "payload_too_large",
      `Cannot read the fleet: it is larger than ${FLEET_MAX_BYTES} bytes`,
    );
  }
  const [managed, departments, workers, schedules, budgets, webhooks, memory] = await Promise.all([
    listFleetObjects(db),
    listDepartments(db),
    readAll<Worker>(
      (page) => listWorkers(db, { recursive: true, ...page }, null, page),
      "~",
      WORKER_PAGE_SIZE_MAX,
    ),
    readAll<Task>((page) => listNamedSchedules(db, page), "~", PAGE_SIZE_MAX),
    readAll<StoredBudget>((page) => listBudgets(db, page), "~", PAGE_SIZE_MAX),
    listChangeableWebhooks(db),
    readAll<MemoryEntry>((page) => listMemory(db, { scope: GLOBAL_SCOPE, ...page }), "", PAGE_SIZE_MAX),
  ]);
  const names = new Map([...departments, ...workers].map(({ id, name }) => [id, name]));
  const present = (
    kind: FleetKind,
    id: string,
    name: string,
    fields: FleetObject["fields"],
  ): PresentObject => ({
    kind,
    id,
    name,
    fields,
    managedBy: managed.get(`${kind} ${id}`) ?? null,
  });
  return [
    ...departments.map((one) => present("department", one.id, one.name, readDepartmentFields(one, names))),
    ...workers.map((one) => present("worker", one.id, one.name, readWorkerFields(one, paths))),
    ...schedules.map((one) => present("schedule", one.id, one.name, readScheduleFields(one, names))),
    ...budgets.map((one) => present("budget", one.id, one.name, readBudgetFields(one, names))),
    ...webhooks.map((one) => present("webhook", one.id, one.name, readWebhookFields(one))),
    ...memory.map(({ key, value }) => present("memory", key, key, { value })),
  ].sort(compareObjects);
}

/** Only the configuration changes its own webhooks. */
async function listChangeableWebhooks(db: Database): Promise<Webhook[]> {
  const all = await readAll<Webhook>((page) => listWebhooks(db, page), "~", PAGE_SIZE_MAX);
  return all.filter(({ origin }) => origin === "api");
}

/** Normalizes a file for the comparison: ordered fields, sorted names, defaults filled in. */
export function normalizeFleet({ paths }: Deps<"paths">, fleet: Fleet): FleetObject[] {
  return [
    ...fleet.departments.map(({ name, parent, sort_order }): FleetObject => ({
      kind: "department",
      name,
      fields: { parent, sort_order },
    })),
    ...fleet.workers.map((one): FleetObject => ({
      kind: "worker",
      name: one.name,
      fields: orderWorkerFields({
        ...one,
        work_dir: one.work_dir === "" ? "" : resolveWorkDir(one.work_dir, paths),
      }),
    })),
    ...fleet.schedules.map((one): FleetObject => ({
      kind: "schedule",
      name: one.name,
      fields: orderScheduleFields({
        ...buildDefaultOptions("scheduled"),
        time_zone: "",
        ...omitUndefined(one),
      }),
    })),
    ...fleet.budgets.map((one): FleetObject => ({
      kind: "budget",
      name: one.name,
      fields: Object.fromEntries(BUDGET_FIELDS.map((name) => [name, one[name]])),
    })),
    ...fleet.webhooks.map((one): FleetObject => ({
      kind: "webhook",
      name: one.name,
      fields: readWebhookFields(one),
    })),
    ...Object.entries(fleet.memory).map(([key, value]): FleetObject => ({
      kind: "memory",
      name: key,
      fields: { value },
    })),
  ].sort(compareObjects);
}

/** Builds the file that recreates the objects, without ids and defaults. */
export function buildFleetExport(present: readonly PresentObject[]): FleetExport {
  const listKind = (kind: FleetKind) => present.filter((one) => one.kind === kind);
  const buildList = (kind: keyof typeof DEFAULTS) =>
    listKind(kind).map(({ name, fields }) => ({ name, ...omitDefaults(kind, fields) }));
  return {
    departments: buildList("department"),
    workers: buildList("worker"),
    schedules: buildList("schedule"),
    budgets: buildList("budget"),
    webhooks: buildList("webhook"),
    memory: Object.fromEntries(listKind("memory").map(({ name, fields }) => [name, String(fields.value)])),
  };
}

// An object with only its required fields shows the defaults of the others.
const PLAIN = fleetSchema.parse({
  departments: [{ name: "x" }],
  workers: [{ name: "x" }],
  budgets: [{ name: "x", unit: "runs", limit: 1, period: "total" }],
});
const DEFAULTS: Record<Exclude<FleetKind, "memory">, Record<string, unknown>> = {
  department: PLAIN.departments[0] ?? {},
  worker: PLAIN.workers[0] ?? {},
  schedule: { ...buildDefaultOptions("scheduled"), time_zone: "" },
  budget: omitRequired(PLAIN.budgets[0] ?? {}),
  webhook: { enabled: true },
};

function omitRequired(
  { unit: _unit, limit: _limit, period: _period, ...others }: Partial<Fleet["budgets"][number]>,
) {
  return others;
}

function omitDefaults(kind: keyof typeof DEFAULTS, fields: FleetObject["fields"]): FleetObject["fields"] {
  return Object.fromEntries(
    Object.entries(fields).filter(([name, value]) =>
      JSON.stringify(value) !== JSON.stringify(DEFAULTS[kind][name])
    ),
  );
}

function readDepartmentFields({ parent_id, sort_order }: Department, names: ReadonlyMap<string, string>) {
  return { parent: names.get(parent_id ?? "") ?? "", sort_order };
}

function readWorkerFields(worker: Worker, paths: DataPaths): FleetObject["fields"] {
  return orderWorkerFields({
    ...worker,
    departments: worker.departments.map(({ name }) => name),
    // A runner has the directory of another installation.
    home: worker.home === NO_HOME ? NO_HOME : "",
    // Another worker gets a new directory where the service chose this one.
    work_dir: worker.work_dir === getOwnWorkDir(paths, worker.id, worker.repo !== null)
      ? ""
      : worker.work_dir,
  });
}

const SCHEDULE_FIELDS = [
  ...["worker", "instruction", "cron", "time_zone"],
  ...Object.keys(optionFields).filter((name) => name !== "name"),
];

function readScheduleFields(task: Task, names: ReadonlyMap<string, string>): FleetObject["fields"] {
  return orderScheduleFields({ ...task, worker: names.get(task.worker_id) ?? task.worker_id });
}

function orderScheduleFields(fields: Record<string, unknown>): FleetObject["fields"] {
  return Object.fromEntries(SCHEDULE_FIELDS.map((name) => [name, fields[name]]));
}

function omitUndefined(fields: object): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

function readBudgetFields(budget: StoredBudget, names: ReadonlyMap<string, string>): FleetObject["fields"] {
  const [, kind, id = ""] = /^(worker|department):(.*)$/s.exec(budget.target) ?? [];
  const target = kind === undefined ? budget.target : `${kind}:${names.get(id) ?? id}`;
  return Object.fromEntries(BUDGET_FIELDS.map((name) => [name, { ...budget, target }[name]]));
}

function readWebhookFields({ url, events, enabled }: Pick<Webhook, "url" | "events" | "enabled">) {
  return { url, events: [...new Set(events)].sort(), enabled };
}

function orderWorkerFields(
  worker: Fleet["workers"][number] | Omit<Worker, "departments"> & { departments: string[] },
) {
  const fields: Record<string, unknown> = {
    ...worker,
    departments: [...new Set(worker.departments)].sort(compareNames),
  };
  const args = Object.entries(worker.engine_args).filter(([, value]) => value !== "").sort(([a], [b]) =>
    compareNames(a, b)
  );
  fields.engine_args = Object.fromEntries(args);
  fields.skills = worker.skills.map(getSkillSource);
  fields.mcp = Object.fromEntries(Object.entries(worker.mcp).sort(([a], [b]) => compareNames(a, b)));
  return Object.fromEntries(WORKER_FIELDS.map((name) => [name, fields[name]]));
}

// Reads by cursor: a page with a number truncates texts (contract 8.18).
async function readAll<T>(
  read: (page: Page) => Promise<Listing<T>>,
  before: string,
  size: number,
): Promise<T[]> {
  const all: T[] = [];
  for (let cursor: string | null = before; cursor !== null;) {
    const { json, next }: Listing<T> = await read({ page: 1, page_size: size, cursor });
    all.push(...parseJson(json));
    cursor = next;
  }
  return all;
}

function compareObjects(a: FleetObject, b: FleetObject): number {
  return FLEET_KINDS.indexOf(a.kind) - FLEET_KINDS.indexOf(b.kind) || compareNames(a.name, b.name);
}

// Compares code units, for the same order on every machine.
function compareNames(a: string, b: string): number {
  const [one, other] = [normalizeName(a), normalizeName(b)];
  return one < other ? -1 : one > other ? 1 : a < b ? -1 : a > b ? 1 : 0;
}
