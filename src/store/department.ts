import { nameKey } from "../domain/worker.ts";
import type { Database } from "./database.ts";

/** A department by id and name. */
export interface DepartmentRef {
  id: string;
  name: string;
}

/** The department that an id or a name means, ids first; null when there is none (contract 3, Department). */
export async function findDepartmentRef(db: Database, idOrName: string): Promise<DepartmentRef | null> {
  const row = await db.first<{ id: string; name: string }>(
    "select id, name from department where id = ? or name_key = ? order by id = ? desc limit 1",
    [idOrName, nameKey(idOrName), idOrName],
  );
  return row === null ? null : { id: row.id, name: row.name };
}

/** A department and everything below it. */
export async function listDescendantIds(db: Database, id: string): Promise<string[]> {
  const rows = await db.read<{ id: string }>(
    `with recursive below (id) as (
      select ?
      union
      select department.id from department join below on department.parent_id = below.id
    )
    select id from below`,
    [id],
  );
  return rows.map((row) => row.id);
}
