import { WAKEUP } from "../../base/wakeups.ts";
import { normalizeName } from "../../domain/call/name_key.ts";
import type { Listing } from "../../domain/call/page.ts";
import {
  RUNNER_SILENT_MS,
  type RunnerClaim,
  type RunnerFilter,
  RUNNERS_MAX,
  runnerSchema,
  type RunnerView,
} from "../../domain/workers/runner.ts";
import { type Database, guard, insertGuarded, type Statement } from "../db/database.ts";
import { buildWhere, type Filters, matchReference } from "../db/filter.ts";
import { list, parseNullableJson } from "../db/list.ts";
import { buildJsonSql, type JsonSql, readJson } from "../db/json_projection.ts";

// The state depends on the time, so no column stores it.
function buildRunnerJson(now: number): JsonSql<RunnerView> {
  const silentUntil = Math.trunc(now - RUNNER_SILENT_MS);
  return buildJsonSql("runner", runnerSchema, {
    state: `case
      when coalesce(runner.last_seen_at, 0) <= ${silentUntil} then 'silent'
      when runner.draining then 'draining'
      else 'online' end`,
    engines: `(select json_group_array(value ->> '$.name') from json_each(runner.engines))`,
    running: `(
      select count(*) from remote_run where runner_id = runner.id and lease_until is not null)`,
  });
}

// The runner of a launch belongs to its launcher, and ends with its run.
const IS_OWN = "runner.launcher = ''";

const FILTERS: Filters<RunnerFilter> = {
  ref: matchReference("runner", { column: "name_key", key: normalizeName }),
};

export function listRunners(db: Database, filter: RunnerFilter, now: number): Promise<Listing<RunnerView>> {
  const where = buildWhere(filter, FILTERS);
  where.conditions.push(IS_OWN);
  return list(db, { table: "runner", json: buildRunnerJson(now), where }, filter);
}

export async function findRunner(db: Database, idOrName: string, now: number): Promise<RunnerView | null> {
  const rest = `from runner where (id = ? or name_key = ?) and ${IS_OWN} order by id = ? desc limit 1`;
  return parseNullableJson(
    await readJson(db, buildRunnerJson(now), rest, [idOrName, normalizeName(idOrName), idOrName]),
  );
}

/** Stores a new runner, guarded by fewer than RUNNERS_MAX. A duplicate name fails the batch. */
export function insertRunner(
  { id, name, labels, allow_admin, secrets, created_at }: RunnerView,
): Statement[] {
  return insertGuarded(
    "runner",
    {
      id,
      name,
      name_key: normalizeName(name),
      labels: JSON.stringify(labels),
      allow_admin,
      secrets,
      created_at,
    },
    { sql: `(select count(*) from runner where ${IS_OWN}) < ?`, args: [RUNNERS_MAX] },
  );
}

/** Stops or resumes new runs on a runner. Guarded by its existence. */
export function setDraining(id: string, draining: boolean): Statement[] {
  return guard("update runner set draining = ? where id = ?", [draining, id], WAKEUP.dispatcher);
}

/** Deletes a runner, guarded by its existence. Leases stay until they expire, because its machine may still be running them. */
export function deleteRunner(id: string): Statement[] {
  return guard("delete from runner where id = ?", [id], WAKEUP.dispatcher);
}

export type RunnerGrant = Pick<RunnerView, "id" | "name">;

export function findRunnerGrant(db: Database, id: string): Promise<RunnerGrant | null> {
  return db.first<RunnerGrant>("select id, name from runner where id = ?", [id]);
}

/** A runner for claims and placement. */
export interface RunnerRow
  extends
    Pick<RunnerView, "id" | "name" | "version" | "max_runs" | "last_seen_at">,
    Pick<RunnerClaim, "work_root" | "place" | "process" | "epoch"> {
  /** JSON list. */
  labels: string;
  allow_admin: number;
  /** 1 when its runs get stored secrets. */
  secrets: number;
  /** 1 when it can set up a box. */
  box: number;
  /** 1 when it can run workers with a repository. */
  repo: number;
  draining: number;
  /** JSON list of objects. */
  engines: string;
  /** The launcher that started it for one run, else "". Then its id is that of the launch. */
  launcher: string;
}

const ROW =
  `id, name, labels, allow_admin, secrets, draining, version, engines, box, repo, max_runs, work_root, place,
  process, epoch, last_seen_at, launcher`;

export function findRunnerRow(db: Database, id: string): Promise<RunnerRow | null> {
  return db.first<RunnerRow>(`select ${ROW} from runner where id = ?`, [id]);
}

/** Lists the runners with these names, or all if `names` is null, oldest first. */
export function listRunnerRows(db: Database, names: readonly string[] | null = null): Promise<RunnerRow[]> {
  if (names === null) return db.read<RunnerRow>(`select ${ROW} from runner where ${IS_OWN} order by id`);
  return db.read<RunnerRow>(
    `select ${ROW} from runner where name_key in (select value from json_each(?)) order by id`,
    [JSON.stringify(names.map(normalizeName))],
  );
}

/** Stores a sign of life of the process with this epoch, and its abilities from a claim. Guarded by the epoch. */
export function storeRunnerReport(id: string, epoch: number, now: number, claim?: RunnerClaim): Statement[] {
  return guard(
    `update runner
    set last_seen_at = ?, version = coalesce(?, version), engines = coalesce(?, engines),
      max_runs = coalesce(?, max_runs), box = coalesce(?, box), repo = coalesce(?, repo)
    where id = ? and epoch = ?`,
    [
      now,
      claim?.version ?? null,
      claim === undefined ? null : JSON.stringify(claim.engines),
      claim?.max_runs ?? null,
      claim?.box ?? null,
      claim?.repo ?? null,
      id,
      epoch,
    ],
  );
}

/** Makes another process this runner. The runs of the process before are lost. Guarded by the previous epoch. */
export function replaceRunnerProcess(row: RunnerRow, claim: RunnerClaim, now: number): Statement[] {
  const { version, engines, box, repo, max_runs, work_root, place, process } = claim;
  return [
    ...guard(
      `update runner
      set version = ?, engines = ?, box = ?, repo = ?, max_runs = ?, work_root = ?, place = ?, process = ?, epoch = epoch + 1,
        last_seen_at = ?
      where id = ? and epoch = ?`,
      [
        version,
        JSON.stringify(engines),
        box,
        repo,
        max_runs,
        work_root,
        place,
        process,
        now,
        row.id,
        row.epoch,
      ],
    ),
    {
      sql: "update remote_run set lease_until = 0 where runner_id = ? and lease_until is not null",
      args: [row.id],
      wakeup: WAKEUP.rescuer,
    },
  ];
}
