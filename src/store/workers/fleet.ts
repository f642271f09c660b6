import type { Listing, Page } from "../../domain/call/page.ts";
import type { Task } from "../../domain/work/task.ts";
import type { FleetKind } from "../../domain/call/vocabulary.ts";
import { type Database, guard, type Statement } from "../db/database.ts";
import { list } from "../db/list.ts";
import { TASK_IS_ACTIVE } from "../db/status_sql.ts";
import { TASKS } from "../work/task.ts";

/** Maps `kind id` to the name of the fleet that manages the object. */
export async function listFleetObjects(db: Database): Promise<ReadonlyMap<string, string>> {
  const rows = await db.read<{ kind: string; id: string; fleet: string }>(
    "select kind, id, fleet from fleet_object",
  );
  return new Map(rows.map(({ kind, id, fleet }) => [`${kind} ${id}`, fleet]));
}

export function assignToFleet(kind: FleetKind, id: string, fleet: string): Statement {
  return {
    sql: `insert into fleet_object (kind, id, fleet) values (?, ?, ?)
      on conflict (kind, id) do update set fleet = excluded.fleet`,
    args: [kind, id, fleet],
  };
}

// A fleet file can contain only schedules with a name. The index has no others.
const NAMED_SCHEDULE = `task.status ${TASK_IS_ACTIVE} and task.type = 'scheduled' and task.name <> ''`;
const SCHEDULES = "task indexed by task_named";

export function listNamedSchedules(db: Database, page: Page): Promise<Listing<Task>> {
  const where = { conditions: [NAMED_SCHEDULE], args: [] };
  return list(db, { ...TASKS, from: SCHEDULES, where }, page);
}

// Every change of a row changes its time, so count and sum detect any change.
const STATE = `(
  select group_concat(rows || ' ' || times)
  from (
    select count(*) as rows, coalesce(sum(updated_at), 0) as times from department
    union all
    select count(*), coalesce(sum(updated_at), 0) from worker
    union all
    select count(*), coalesce(sum(updated_at), 0) from ${SCHEDULES} where ${NAMED_SCHEDULE}
    union all
    select count(*), coalesce(sum(updated_at), 0) from budget
    union all
    select count(*), coalesce(sum(updated_at), 0) from webhook
    union all
    select count(*), coalesce(sum(updated_at), 0) from memory where scope = 'global'
    union all
    select count(*), 0 from fleet_object))`;

/** Returns a text that differs after every change of an object that a fleet can contain. */
export async function readFleetState(db: Database): Promise<string> {
  return await db.readValue<string>(`select ${STATE} as state`) ?? "";
}

/** Guards a batch by the fleet state `state` being unchanged (contract 16). */
export function guardFleetState(state: string): Statement[] {
  return guard(
    `update counter set value = value where name = 'worker' and key = 'all' and ${STATE} = ?`,
    [state],
  );
}

/** Returns the size of all texts that a fleet can contain. */
export async function countFleetBytes(db: Database): Promise<number> {
  return await db.readValue<number>(`select
    (select coalesce(sum(octet_length(description) + octet_length(memory) + octet_length(constraints)
      + octet_length(engine_args) + octet_length(scopes)), 0) from worker) +
    (select coalesce(sum(octet_length(instruction)), 0) from ${SCHEDULES} where ${NAMED_SCHEDULE}) +
    (select coalesce(sum(octet_length(value)), 0) from memory where scope = 'global') as bytes`) ?? 0;
}
