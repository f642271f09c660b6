import { WAKEUP } from "../../base/wakeups.ts";
import type { Listing, Page } from "../../domain/call/page.ts";
import type { Candidate } from "../../domain/chat/routing.ts";
import { normalizeName } from "../../domain/call/name_key.ts";
import type { McpPatch } from "../../domain/workers/mcp_server.ts";
import { NO_HOME } from "../../domain/workers/runner.ts";
import type { Skill } from "../../domain/workers/skill.ts";
import type { WorkerIsolation } from "../../domain/workers/isolation.ts";
import type { SecretSettings } from "../../domain/workers/worker_secrets.ts";
import { type Worker, type WorkerFilter, workerSchema } from "../../domain/workers/worker.ts";
import { type Database, guard, type Statement, type Value } from "../db/database.ts";
import { buildWhere, BY_LIST, type Filters, matchAny, matchReference, matchText } from "../db/filter.ts";
import { list, parseNullableJson } from "../db/list.ts";
import { EXECUTION_IS_OPEN } from "../db/status_sql.ts";
import { ISOLATION_EFFECTIVE } from "../db/setting.ts";
import { buildJsonSql, listFields, readJson, toColumnValue } from "../db/json_projection.ts";
import type { Json } from "../../domain/call/json.ts";

const WORKER_JSON = buildJsonSql("worker", workerSchema, {
  departments: `coalesce((
    select json_group_array(json_object('id', id, 'name', name))
    from (
      select department.id, department.name
      from worker_department
      join department on department.id = department_id
      where worker_id = worker.id
      order by name_key)), json('[]'))`,
  status: `case
    when exists (
      select 1 from execution where worker_id = worker.id and status ${EXECUTION_IS_OPEN})
    then iif(exists (
      select 1
      from question
      join execution on execution.id = question.execution_id and execution.status ${EXECUTION_IS_OPEN}
      where question.worker_id = worker.id and question.waiting = 1), 'waiting', 'working')
    when worker.paused then 'paused'
    else 'idle' end`,
  isolation_effective: `json(${ISOLATION_EFFECTIVE})`,
});

const WORKER_TEXTS = ["description", "memory", "constraints"];

const storedSchema = workerSchema.omit({
  status: true,
  departments: true,
  isolation_effective: true,
});

type WorkerRow = Omit<Worker, "status" | "departments" | "isolation_effective">;

export function insertWorker(worker: WorkerRow, departmentIds: string[]): Statement[] {
  const names = listFields(storedSchema);
  return [
    {
      sql: `insert into worker (name_key, ${names.join(", ")}) values (?, ${
        names.map(() => "?").join(", ")
      })`,
      args: [
        normalizeName(worker.name),
        ...names.map((name) => toColumnValue(storedSchema, name, worker[name])),
      ],
    },
    ...joinDepartments(worker.id, departmentIds),
  ];
}

const CHANGEABLE = listFields(
  storedSchema.omit({ id: true, work_dir: true, created_at: true, updated_at: true }),
);

export type WorkerChange =
  & Partial<Pick<WorkerRow, Exclude<(typeof CHANGEABLE)[number], "env" | "mcp">>>
  & { env?: Record<string, string | null>; mcp?: McpPatch };

/** Changes the given fields, guarded by the worker's existence. Null for `departmentIds` leaves the departments unchanged. */
export function updateWorker(
  id: string,
  change: WorkerChange,
  departmentIds: string[] | null,
  now: number,
): Statement[] {
  const set = ["updated_at = ?"];
  const args: Value[] = [now];
  for (const name of CHANGEABLE) {
    if (name === "engine_args" || name === "env" || name === "mcp") continue;
    const value = change[name];
    if (value === undefined) continue;
    set.push(`${name} = ?`);
    args.push(toColumnValue(storedSchema, name, value));
  }
  if (change.engine_args !== undefined) {
    // Merges per engine. "" deletes an engine's arguments, as null does in a merge patch.
    const patch = Object.entries(change.engine_args).map((
      [engine, value],
    ) => [engine, value === "" ? null : value]);
    set.push("engine_args = json_patch(engine_args, ?)");
    args.push(JSON.stringify(Object.fromEntries(patch)));
  }
  if (change.env !== undefined) {
    // A merge patch: null removes a variable.
    set.push("env = json_patch(env, ?)");
    args.push(JSON.stringify(change.env));
  }
  if (change.mcp !== undefined) {
    // A merge patch would merge the settings of one server, too.
    const names = Object.keys(change.mcp);
    const present = Object.entries(change.mcp).filter(([, server]) => server !== null);
    const removed = `json_remove(mcp${", ?".repeat(names.length)})`;
    set.push(`mcp = json_set(${removed}${", ?, json(?)".repeat(present.length)})`);
    args.push(...names.map((name) => `$.${name}`));
    args.push(...present.flatMap(([name, server]) => [`$.${name}`, JSON.stringify(server)]));
  }
  if (change.name !== undefined) {
    set.push("name_key = ?");
    args.push(normalizeName(change.name));
  }
  // The directory is on the previous runner.
  if (change.runs_on !== undefined && change.home === undefined) {
    set.push(`home = iif(home = '${NO_HOME}', home, '')`);
  }
  // Tasks may have waited for this: the worker was paused, or its engine had a rate limit.
  const isAwaited = change.paused === false || change.engine !== undefined ||
    change.runs_on !== undefined || change.home !== undefined;
  const wakeup = isAwaited ? WAKEUP.dispatcher : undefined;
  return [
    ...guard(`update worker set ${set.join(", ")} where id = ?`, [...args, id], wakeup),
    ...(departmentIds === null ? [] : [
      { sql: "delete from worker_department where worker_id = ?", args: [id] },
      ...joinDepartments(id, departmentIds),
    ]),
  ];
}

/**
 * Moves a worker's directory to another runner, or with "" to the next runner that runs the worker. Guarded: the worker must not be
 * running.
 */
export function setWorkerHome(id: string, home: string, now: number): Statement[] {
  return guard(
    `update worker set home = ?, updated_at = ?
    where id = ?
      and not exists (select 1 from execution where worker_id = worker.id and status ${EXECUTION_IS_OPEN})`,
    [home, now, id],
    WAKEUP.dispatcher,
  );
}

/** Deletes a worker with its memberships and contexts, guarded by its existence. */
export function deleteWorker(id: string): Statement[] {
  return guard("delete from worker where id = ?", [id]);
}

function joinDepartments(workerId: string, departmentIds: string[]): Statement[] {
  return departmentIds.map((departmentId) => ({
    sql: "insert or ignore into worker_department (worker_id, department_id) values (?, ?)",
    args: [workerId, departmentId],
  }));
}

export async function findWorker(db: Database, id: string): Promise<Worker | null> {
  return parseNullableJson(await findWorkerJson(db, id));
}

export function findWorkerJson(db: Database, id: string): Promise<Json<Worker> | null> {
  return readJson(db, WORKER_JSON, "from worker where id = ?", [id]);
}

/** Returns the settings of a worker that may name secrets, empty ones for an unknown worker. */
export async function findSecretSettings(db: Database, id: string): Promise<SecretSettings> {
  const row = await db.first<SettingsRow>("select env, mcp, repo from worker where id = ?", [id]);
  return row === null ? { env: {}, mcp: {}, repo: null } : parseSecretSettings(row);
}

/** Lists the workers that have variables, MCP servers or a repository. */
export async function listSecretSettings(
  db: Database,
): Promise<({ id: string; name: string } & SecretSettings)[]> {
  const rows = await db.read<{ id: string; name: string } & SettingsRow>(
    `select id, name, env, mcp, repo
    from worker
    where env <> '{}' or mcp <> '{}' or repo <> 'null'
    order by id`,
  );
  return rows.map(({ id, name, ...row }) => ({ id, name, ...parseSecretSettings(row) }));
}

type SettingsRow = Record<keyof SecretSettings, string>;

function parseSecretSettings({ env, mcp, repo }: SettingsRow): SecretSettings {
  return { env: JSON.parse(env), mcp: JSON.parse(mcp), repo: JSON.parse(repo) };
}

/** Returns the skills of a worker, none for an unknown worker. */
export async function findSkills(db: Database, id: string): Promise<Skill[]> {
  const skills = await db.readValue<string>("select skills from worker where id = ?", [id]);
  return skills === null ? [] : JSON.parse(skills);
}

/** Lists the skills of all workers. */
export async function listAllSkills(db: Database): Promise<Skill[]> {
  const rows = await db.readColumn<string>("select skills from worker where skills <> '[]' order by id");
  return rows.flatMap((skills) => JSON.parse(skills) as Skill[]);
}

const FILTERS: Filters<WorkerFilter> = {
  id: matchAny("worker.id"),
  engine: matchAny("worker.engine"),
  text: matchText(["worker.name", "worker.description"]),
  ref: matchReference("worker", { column: "name_key", key: normalizeName }),
  name: ({ conditions, args }, names) => {
    conditions.push(`(${names.map(() => "instr(worker.name_key, ?) > 0").join(" or ")})`);
    args.push(...names.map(normalizeName));
  },
  // The list needs the tree of departments.
  department: BY_LIST,
  recursive: BY_LIST,
  no_recursive: BY_LIST,
};

/** Lists workers, newest first. Null for `departmentIds` means any department. */
export function listWorkers(
  db: Database,
  filter: WorkerFilter,
  departmentIds: string[] | null,
  page: Page,
): Promise<Listing<Worker>> {
  const where = buildWhere(filter, FILTERS);
  if (departmentIds !== null) {
    where.conditions.push(`worker.id in (
      select worker_id from worker_department where department_id in (select value from json_each(?)))`);
    where.args.push(JSON.stringify(departmentIds));
  }
  return list(db, { table: "worker", json: WORKER_JSON, texts: WORKER_TEXTS, where }, page);
}

// Routing gets no descriptions beyond this size.
const DESCRIPTIONS_MAX_BYTES = 2 * 1024 * 1024;

export async function listCandidates(db: Database): Promise<Candidate[]> {
  const rows = await db.read<{ json: string }>(
    `select json_object('id', id, 'name', name,
      'description', iif(sum(octet_length(description)) over (order by id) <= ?, description, ''),
      'paused', json(iif(paused, 'true', 'false')),
      'departments', (
        select json_group_array(department.name)
        from worker_department
        join department on department.id = department_id
        where worker_id = worker.id)) as json
    from worker
    order by id`,
    [DESCRIPTIONS_MAX_BYTES],
  );
  return rows.map((row) => JSON.parse(row.json));
}

/** Counts the workers with a repository. */
export async function countRepoWorkers(db: Database): Promise<number> {
  return await db.readValue<number>("select count(*) as workers from worker where repo <> 'null'") ?? 0;
}

/** Counts the workers with skills. */
export async function countSkillWorkers(db: Database): Promise<number> {
  return await db.readValue<number>("select count(*) as workers from worker where skills <> '[]'") ?? 0;
}

/** Lists the work directories of all local workers except one. */
export async function listWorkDirs(
  db: Database,
  exceptId: string,
): Promise<{ id: string; work_dir: string }[]> {
  const sql = "select id, work_dir from worker where id <> ? and runs_on = '[]'";
  return await db.read<{ id: string; work_dir: string }>(sql, [exceptId]);
}

/** Finds a worker's own isolation. null: the default of the configuration. */
export async function findIsolation(db: Database, id: string): Promise<WorkerIsolation | null> {
  return parseNullableJson(
    await db.readValue<Json<WorkerIsolation | null>>("select isolation from worker where id = ?", [
      id,
    ]),
  );
}

/** Lists the workers of this machine with their own isolation. */
export async function listWorkerIsolations(
  db: Database,
): Promise<{ name: string; engine: string; isolation: WorkerIsolation | null }[]> {
  const rows = await db.read<{ name: string; engine: string; isolation: string }>(
    "select name, engine, isolation from worker where runs_on = '[]' order by id",
  );
  return rows.map((row) => ({ ...row, isolation: JSON.parse(row.isolation) }));
}

/** Lists the work directories of other local workers that are not below `workers`, where the service makes them. */
export function listForeignWorkDirs(db: Database, exceptId: string, workers: string): Promise<string[]> {
  return db.readColumn<string>(
    "select work_dir from worker where id <> ? and runs_on = '[]' and work_dir <> ? || '/' || id",
    [exceptId, workers],
  );
}

/** Lists the work directories of other workers on runners that are not the default ones. */
export function listRemoteWorkDirs(db: Database, exceptId: string, workers: string): Promise<string[]> {
  return db.readColumn<string>(
    `select distinct work_dir
    from worker
    where id <> ? and runs_on <> '[]' and repo = 'null' and work_dir <> ? || '/' || id`,
    [exceptId, workers],
  );
}

/** Finds the worker with this id, or else at most two workers with this name in any case. */
export async function listWorkerIds(db: Database, idOrName: string): Promise<string[]> {
  const rows = await db.read<{ id: string }>(
    "select id from worker where id = ? or name_key = ? order by id = ? desc, id limit 2",
    [idOrName, normalizeName(idOrName), idOrName],
  );
  const [first] = rows;
  return first?.id === idOrName ? [first.id] : rows.map(({ id }) => id);
}
