import { type Department, departmentSchema, type DepartmentUpdate } from "../../domain/workers/department.ts";
import { normalizeName } from "../../domain/call/name_key.ts";
import { buildSet, type Database, guard, insertGuarded, type Statement } from "../db/database.ts";
import { parseNullableJson } from "../db/list.ts";
import { buildJsonSql, readAllJson, readJson } from "../db/json_projection.ts";
import { parseJson } from "../../domain/call/json.ts";

const DEPARTMENT_JSON = buildJsonSql("department", departmentSchema, {
  worker_count: "(select count(*) from worker_department where department_id = department.id)",
});

type DepartmentRef = Pick<Department, "id" | "name">;

const BY_REFERENCE = "from department where id = ? or name_key = ? order by id = ? desc limit 1";

/** Finds a department by id, else by name (contract 3, Department). */
export function findDepartmentRef(db: Database, idOrName: string): Promise<DepartmentRef | null> {
  return db.first(`select id, name ${BY_REFERENCE}`, [idOrName, normalizeName(idOrName), idOrName]);
}

/** Finds a department like findDepartmentRef(), with all fields. */
export async function findDepartment(db: Database, idOrName: string): Promise<Department | null> {
  const args = [idOrName, normalizeName(idOrName), idOrName];
  return parseNullableJson(await readJson(db, DEPARTMENT_JSON, BY_REFERENCE, args));
}

/** Lists all departments by sort order and name (contract 1). */
export async function listDepartments(db: Database): Promise<Department[]> {
  const rest = "from department order by sort_order, name_key";
  return (await readAllJson(db, DEPARTMENT_JSON, rest)).map(parseJson);
}

export function listDescendantIds(db: Database, id: string): Promise<string[]> {
  return db.readColumn<string>(
    `with recursive below (id) as (
      select ?
      union
      select department.id from department join below on department.parent_id = below.id
    )
    select id from below`,
    [id],
  );
}

/** Stores a new department, guarded by fewer than `max`. A duplicate name fails the batch. */
export function insertDepartment(department: Department, max: number): Statement[] {
  const { id, name, parent_id, sort_order, created_at, updated_at } = department;
  return insertGuarded(
    "department",
    { id, name, name_key: normalizeName(name), parent_id, sort_order, created_at, updated_at },
    { sql: "(select count(*) from department) < ?", args: [max] },
  );
}

/** Changes a department, guarded by its existence, and by the new parent not being below it, so that moves cannot create a cycle. */
export function updateDepartment(
  id: string,
  { name, parent_id, sort_order }: DepartmentUpdate,
  now: number,
): Statement[] {
  const name_key = name === undefined ? undefined : normalizeName(name);
  const { sql, args } = buildSet({ name, name_key, sort_order, parent_id, updated_at: now });
  if (parent_id === undefined) return guard(`update department set ${sql} where id = ?`, [...args, id]);
  return guard(
    `update department
    set ${sql}
    where id = ? and not exists (
      with recursive above (id) as (
        select ?
        union
        select department.parent_id from department join above on department.id = above.id
      )
      select 1 from above where id = ?)`,
    [...args, id, parent_id, id],
  );
}

/** Deletes a department and its memberships, guarded by its existence and by having no children. */
export function deleteDepartment(id: string): Statement[] {
  return guard(
    "delete from department where id = ? and not exists (select 1 from department where parent_id = ?)",
    [id, id],
  );
}
