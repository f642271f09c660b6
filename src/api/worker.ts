import { join } from "node:path";
import { reservedFlag } from "../engine/adapters.ts";
import { conflict, invalid, notFound, ServiceError } from "../domain/error.ts";
import { planRemoval, type Removal, remove, ReplacedError } from "../files/removal.ts";
import { outboundOf, platformOf } from "../domain/message.ts";
import type { Listing } from "../domain/page.ts";
import { type Caller, grants, WORKER_SCOPES_DEFAULT } from "../domain/scope.ts";
import type { Worker, WorkerCreate, WorkerFilter, WorkerUpdate } from "../domain/worker.ts";
import { splitArgs } from "../engine/arguments.ts";
import { newId } from "../base/id.ts";
import type { Statement } from "../store/database.ts";
import { findDepartmentRef, listDescendantIds } from "../store/department.ts";
import { listOpenExecutionIds } from "../store/execution.ts";
import { record } from "../store/journal.ts";
import { sendMessage } from "../store/outbound.ts";
import { deleteForeignContexts } from "../store/session.ts";
import { cancelTasksOf } from "../store/task_move.ts";
import { listWaitingReplies } from "../store/task.ts";
import {
  deleteWorker as deleteWorkerRow,
  findWorker,
  findWorkerJson,
  insertWorker,
  listWorkDirs,
  listWorkers as listWorkerRows,
  updateWorker as updateWorkerRow,
  type WorkerChange,
} from "../store/worker.ts";
import { create, type Created, lookAgain } from "./create.ts";
import type { Call, Service } from "./service.ts";
import { checkDeletable, makeWorkDir, resolveWorkDir } from "./work_dir.ts";

// What decides how far a worker reaches is the operator's alone (contract 2, reliability SCP-3).
const OPERATOR_FIELDS = [
  "scopes",
  "engine",
  "engine_args",
  "work_dir",
  "constraints",
  "departments",
] as const;

/** POST /api/workers (interface 4.1). Makes the work directory. Throws `invalid_request`, `forbidden`. */
export function createWorker(service: Service, call: Call, input: WorkerCreate): Promise<Created> {
  return create(service, call, async () => {
    checkAuthority(call.caller, OPERATOR_FIELDS.filter((name) => Object.keys(input[name]).length > 0));
    checkGrant(call.caller, input.scopes);
    checkEngines(service, input);
    const id = newId();
    const now = service.clock.now();
    const workDir = input.work_dir === ""
      ? join(service.paths.workers, id)
      : resolveWorkDir(input.work_dir, service.paths);
    const departments = await resolveDepartments(service, input.departments);
    const response: Worker = {
      id,
      name: input.name,
      description: input.description,
      memory: input.memory,
      constraints: input.constraints,
      engine: input.engine,
      engine_args: withoutEmpty(input.engine_args),
      departments,
      scopes: input.scopes,
      work_dir: workDir,
      status: input.paused ? "paused" : "idle",
      paused: input.paused,
      created_at: now,
      updated_at: now,
    };
    await makeWorkDir(workDir);
    const own = input.work_dir === "";
    return {
      // Without the worker its default directory has no owner; a directory that was named may belong to others.
      ...(own ? { undo: () => Deno.remove(workDir).catch(() => {}) } : {}),
      statements: [
        ...insertWorker(response, departments.map((department) => department.id)),
        record(now, {
          kind: "worker.created",
          worker_id: id,
          actor: call.caller.subject,
          data: { name: input.name },
        }),
      ],
      response,
    };
  });
}

/** GET /api/workers (interface 4.1). An unknown department answers an empty list. */
export async function listWorkers(service: Service, filter: WorkerFilter): Promise<Listing> {
  const { db } = service;
  if (filter.department === undefined) return await listWorkerRows(db, filter, null, filter);
  const department = await findDepartmentRef(db, filter.department);
  if (department === null) return { json: "[]", total: 0, next: null };
  const ids = filter.recursive ? await listDescendantIds(db, department.id) : [department.id];
  return await listWorkerRows(db, filter, ids, filter);
}

/** GET /api/workers/:id. Throws `not_found`. */
export async function getWorker(service: Service, id: string): Promise<string> {
  const { db } = service;
  // Programs ask for the same one again and again, and each read of a file takes and gives back its locks.
  const read = () => findWorkerJson(db, id);
  const json = await db.unlessChanged(`worker ${id}`, read, (found) => found?.length ?? 0);
  if (json === null) throw notFound("worker", id);
  return json;
}

/** PUT /api/workers/:id: absent is unchanged (interface 4.1, contract 3). Throws `invalid_request`, `not_found`, `forbidden`. */
export function updateWorker(
  service: Service,
  call: Call,
  id: string,
  input: WorkerUpdate,
): Promise<string> {
  return lookAgain(() => changeWorker(service, call, id, input));
}

async function changeWorker(service: Service, call: Call, id: string, input: WorkerUpdate): Promise<string> {
  const { db, clock, engines } = service;
  const worker = await findWorker(db, id);
  if (worker === null) throw notFound("worker", id);
  const change = changed(worker, input);
  checkAuthority(call.caller, OPERATOR_FIELDS.filter((name) => change[name] !== undefined));
  checkEngines(service, change);
  const departments = change.departments === undefined
    ? null
    : await resolveDepartments(service, change.departments);
  const now = clock.now();
  const statements: Statement[] = [
    ...updateWorkerRow(id, change, departments?.map((department) => department.id) ?? null, now),
    record(now, {
      kind: "worker.updated",
      worker_id: id,
      actor: call.caller.subject,
      data: { fields: Object.keys(change) },
    }),
  ];
  if (change.engine !== undefined) {
    statements.push(deleteForeignContexts(id, engines.find(change.engine)?.name ?? change.engine));
  }
  await db.writeOr(statements, () => notFound("worker", id));
  return await getWorker(service, id);
}

// GET then PUT has to work for everybody, so a field that says what is so already is no change.
function changed(
  worker: Worker,
  input: WorkerUpdate,
): WorkerChange & { departments?: string[]; work_dir?: never } {
  if (input.work_dir !== undefined && input.work_dir !== worker.work_dir) {
    throw invalid(
      "work_dir",
      "cannot be changed, because what agents remember belongs to it; make a new worker",
    );
  }
  const { id: _id, status: _status, created_at: _created, updated_at: _updated, work_dir: _dir, ...fields } =
    input;
  const shown = { ...worker, departments: worker.departments.map((department) => department.id) };
  const entries = Object.entries(fields).filter(([name, value]) =>
    value !== undefined && JSON.stringify(value) !== JSON.stringify(shown[name as keyof typeof shown])
  );
  return Object.fromEntries(entries);
}

/**
 * DELETE /api/workers/:id. Cancels its tasks, ends its runs, answers when they have ended; history stays
 * (contract 3). Throws `not_found`, and `conflict` before anything happens when the directory may not go.
 */
export async function deleteWorker(
  service: Service,
  call: Call,
  id: string,
  deleteWorkDir: boolean,
): Promise<void> {
  const { db, clock } = service;
  const worker = await findWorker(db, id);
  if (worker === null) throw notFound("worker", id);
  if (deleteWorkDir) checkDeletable(worker.work_dir, service.paths, await listWorkDirs(db, id));
  const removal = deleteWorkDir ? planRemoval(worker.work_dir) : null;
  const now = clock.now();
  const waiting = await listWaitingReplies(db, id);
  await db.writeOr([
    ...deleteWorkerRow(id),
    cancelTasksOf({ worker_id: id }, "worker deleted", now),
    ...waiting.flatMap((task) =>
      sendMessage(outboundOf({
        id: newId(),
        session_key: task.session_key,
        platform: platformOf(task.session_key),
        message_id: task.message_id,
        content: `This will not be done: ${worker.name} was deleted. It was: ${
          task.instruction.slice(0, 200)
        }`,
        source_type: "system",
        source_id: task.id,
      }, now))
    ),
    record(now, {
      kind: "worker.deleted",
      worker_id: id,
      actor: call.caller.subject,
      data: { name: worker.name },
    }),
  ], () => notFound("worker", id));
  // After the commit there can be no new claim, so these are all.
  const open = await listOpenExecutionIds(db, id);
  await Promise.all(open.map((executionId) => service.interrupt(executionId)));
  // What its engines remembered is of no use to anybody any more.
  await Deno.remove(join(service.paths.state, id), { recursive: true }).catch(() => {});
  if (removal !== null) await removeDirectory(removal, worker.work_dir);
}

// An agent that is being ended still runs: the path may name something else now than when it was checked.
async function removeDirectory(removal: Removal, path: string): Promise<void> {
  const kept = `The worker is deleted, but not its directory ${path}`;
  try {
    await remove(removal);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return;
    if (error instanceof ReplacedError) {
      throw conflict(`${kept}: ${error.message}. Look at it, and delete it by hand`);
    }
    throw new ServiceError("internal", kept, { cause: error });
  }
}

function checkAuthority(caller: Caller, fields: string[]): void {
  const [field] = fields;
  if (caller.run === null || field === undefined) return;
  throw new ServiceError("forbidden", `Cannot set ${field}: only an operator may, never a run token`);
}

// A new worker without scopes gets the default ones, and no caller grants more than it holds.
function checkGrant(caller: Caller, scopes: string[]): void {
  const wanted = scopes.length === 0 ? WORKER_SCOPES_DEFAULT : scopes;
  const missing = wanted.find((entry) => !grants(caller.scopes, entry));
  if (caller.run === null || missing === undefined) return;
  throw new ServiceError("forbidden", `Cannot grant ${missing}: this token does not hold it`, {
    required_scope: missing,
  });
}

function checkEngines(service: Service, input: Pick<WorkerUpdate, "engine" | "engine_args">): void {
  const known = service.engines.names;
  if (input.engine !== undefined && service.engines.find(input.engine) === null) {
    throw invalid(
      "engine",
      `no engine is called ${JSON.stringify(input.engine)}; known: ${known.join(", ")}`,
    );
  }
  for (const [name, text] of Object.entries(input.engine_args ?? {})) {
    const path = `engine_args.${name}`;
    if (!known.includes(name)) throw invalid(path, `no engine is called that; known: ${known.join(", ")}`);
    const flag = reservedFlag(service.engines.find(name)?.kind ?? "", argsIn(path, text));
    if (flag !== null) throw invalid(path, `cannot have ${flag}: the service itself decides this`);
  }
}

function argsIn(path: string, text: string): string[] {
  try {
    return splitArgs(text);
  } catch (error) {
    throw invalid(path, error instanceof Error ? error.message : String(error));
  }
}

async function resolveDepartments(service: Service, keys: string[]): Promise<{ id: string; name: string }[]> {
  const found = new Map<string, { id: string; name: string }>();
  for (const [index, key] of keys.entries()) {
    const department = await findDepartmentRef(service.db, key);
    if (department === null) {
      throw invalid(`departments.${index}`, `no department has the id or name ${JSON.stringify(key)}`);
    }
    found.set(department.id, department);
  }
  return [...found.values()];
}

function withoutEmpty(args: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(args).filter(([, value]) => value !== ""));
}
