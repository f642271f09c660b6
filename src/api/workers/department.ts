import {
  buildForest,
  type Department,
  type DepartmentCreate,
  DEPARTMENTS_MAX,
  type DepartmentTree,
  type DepartmentUpdate,
} from "../../domain/workers/department.ts";
import { conflict, invalid, notFound, type ServiceError } from "../../domain/call/error.ts";
import { createId } from "../../base/id.ts";
import { isDuplicate } from "../../store/db/database.ts";
import {
  deleteDepartment as deleteDepartmentRow,
  findDepartment,
  findDepartmentRef,
  insertDepartment,
  listDepartments as listDepartmentRows,
  updateDepartment as updateDepartmentRow,
} from "../../store/workers/department.ts";
import type { Database } from "../../store/db/database.ts";
import { formatJson } from "../../domain/call/json.ts";
import { type Answer, answer, DELETED, requireFound } from "../call/answer.ts";
import { type Call, recordBy } from "../call/call.ts";
import type { Creation } from "../call/idempotency.ts";
import type { Deps } from "../call/services.ts";

/** Lists all departments as trees, by sort_order and name. */
export async function listDepartments({ db }: Deps<"db">): Promise<Answer<DepartmentTree[]>> {
  const departments = await listDepartmentRows(db);
  return { json: formatJson(buildForest(departments)), total: departments.length };
}

/** Finds a department by id, or else by name. Throws `not_found`. */
export async function getDepartment({ db }: Deps<"db">, idOrName: string): Promise<Answer<Department>> {
  return answer(await requireDepartment(db, idOrName));
}

async function requireDepartment(db: Database, idOrName: string): Promise<Department> {
  return requireFound(await findDepartment(db, idOrName), "department", idOrName);
}

/** Creates a department. Throws `invalid_request` for an unknown parent, and `conflict` for a taken name. */
export async function planDepartment(
  { db, clock }: Deps<"db" | "clock">,
  call: Call,
  input: DepartmentCreate,
): Promise<Creation<Department>> {
  const now = clock.now();
  const department = {
    id: createId(),
    name: input.name,
    parent_id: await resolveParent(db, input.parent_id),
    sort_order: input.sort_order,
    worker_count: 0,
    created_at: now,
    updated_at: now,
  };
  return {
    statements: [
      ...insertDepartment(department, DEPARTMENTS_MAX),
      recordBy(call, now, {
        kind: "department.created",
        data: { department_id: department.id, name: department.name },
      }),
    ],
    response: department,
    lost: () =>
      conflict(`Cannot create the department: ${DEPARTMENTS_MAX} departments exist. Delete some first.`),
    duplicate: () => buildNameTaken(input.name),
  };
}

/** Updates a department. Throws `not_found`, and `conflict` for a cycle or a taken name. */
export async function updateDepartment(
  { db, clock }: Deps<"db" | "clock">,
  call: Call,
  idOrName: string,
  input: DepartmentUpdate,
): Promise<Answer<Department>> {
  const { id, name } = await requireDepartment(db, idOrName);
  const parentId = input.parent_id === undefined ? undefined : await resolveParent(db, input.parent_id);
  const now = clock.now();
  const change = { name: input.name, parent_id: parentId, sort_order: input.sort_order };
  try {
    await db.writeOr(
      [
        ...updateDepartmentRow(id, change, now),
        recordBy(call, now, {
          kind: "department.updated",
          data: { department_id: id, name: input.name ?? name },
        }),
      ],
      async () =>
        await findDepartmentRef(db, id) === null ? notFound("department", idOrName) : conflict(
          `Cannot move the department ${
            JSON.stringify(name)
          }: the new parent is the department itself or below it`,
        ),
    );
  } catch (error) {
    throw isDuplicate(error) ? buildNameTaken(input.name ?? name) : error;
  }
  return answer(await requireDepartment(db, id));
}

/** Deletes a department and its memberships. Throws `not_found`, and `conflict` while it has children. */
export async function deleteDepartment({ db, clock }: Deps<"db" | "clock">, call: Call, idOrName: string) {
  const { id, name } = await requireDepartment(db, idOrName);
  await db.writeOr([
    ...deleteDepartmentRow(id),
    recordBy(call, clock.now(), { kind: "department.deleted", data: { department_id: id, name } }),
  ], async () =>
    await findDepartmentRef(db, id) === null ? notFound("department", idOrName) : conflict(
      `Cannot delete the department ${
        JSON.stringify(name)
      }: it has child departments. Move or delete them first.`,
    ));
  return DELETED;
}

async function resolveParent(db: Database, key: string | null): Promise<string | null> {
  if (key === null || key === "") return null;
  const parent = await findDepartmentRef(db, key);
  if (parent === null) throw invalid("parent_id", `no department has the id or name ${JSON.stringify(key)}`);
  return parent.id;
}

function buildNameTaken(name: string): ServiceError {
  return conflict(`Cannot name a department ${JSON.stringify(name)}: another department has this name`);
}
