import { WAKEUP } from "../../base/wakeups.ts";
import { nameKey } from "../../domain/call/name.ts";
import type { Listing } from "../../domain/call/page.ts";
import {
  RUNNER_SILENT_MS,
  type RunnerClaim,
  type RunnerFilter,
  RUNNERS_MAX,
  runnerSchema,
  type RunnerShown,
} from "../../domain/workers/runner.ts";
import { type Database, guarded, type Row, type Statement } from "../db/database.ts";
import { list, parsed } from "../db/list.ts";
import { firstShown, type JsonSql, shown } from "../db/json_projection.ts";

// The time stands in the text, which is made anew for each look: a state is not kept anywhere.
function runnerJson(now: number): JsonSql<RunnerShown> {
  const heard = Math.trunc(now - RUNNER_SILENT_MS);
  return shown("runner", runnerSchema, {
    state: `case
      when coalesce(runner.last_seen_at, 0) <= ${heard} then 'silent'
      when runner.draining then 'draining'
      else 'online' end`,
    engines: `(select json_group_array(value ->> '$.name') from json_each(runner.engines))`,
    running: `(
      select count(*) from remote_run where runner_id = runner.id and lease_until is not null)`,
  });
}

/** Runners, newest first. */
export function listRunners(db: Database, filter: RunnerFilter, now: number): Promise<Listing<RunnerShown>> {
  const where = { conditions: [], args: [] };
  return list(db, { table: "runner", json: runnerJson(now), where }, filter);
}

/** The runner with this id or name, or null. */
export async function findRunner(db: Database, idOrName: string, now: number): Promise<RunnerShown | null> {
  const rest = "from runner where id = ? or name_key = ? order by id = ? desc limit 1";
  return parsed(await firstShown(db, runnerJson(now), rest, [idOrName, nameKey(idOrName), idOrName]));
}

/** Stores a new runner, guarded by there being fewer than RUNNERS_MAX. A name that is taken breaks the batch. */
export function insertRunner({ id, name, labels, allow_admin, created_at }: RunnerShown): Statement[] {
  return guarded(
    `insert into runner (id, name, name_key, labels, allow_admin, created_at)
    select ?, ?, ?, ?, ?, ?
    where (select count(*) from runner) < ?`,
    [id, name, nameKey(name), JSON.stringify(labels), allow_admin, created_at, RUNNERS_MAX],
  );
}

/** From here on it gets no run, or gets runs again. Guarded by its existence. */
export function setDraining(id: string, draining: boolean): Statement[] {
  return guarded("update runner set draining = ? where id = ?", [draining, id], WAKEUP.dispatcher);
}

/**
 * Forgets a runner; its token counts no longer. Its runs keep their leases, which nothing renews: until those are over, its machine
 * may still be running them. Guarded by its existence.
 */
export function deleteRunner(id: string): Statement[] {
  return guarded("delete from runner where id = ?", [id], WAKEUP.dispatcher);
}

/** What a token of a runner stands for. */
export interface RunnerGrant extends Row {
  id: string;
  name: string;
}

/** The runner of a token, or null when it was removed. */
export function findRunnerGrant(db: Database, id: string): Promise<RunnerGrant | null> {
  return db.first<RunnerGrant>("select id, name from runner where id = ?", [id]);
}

/** A runner as claims and placement see it. */
export interface RunnerRow extends Row {
  id: string;
  name: string;
  /** JSON list. */
  labels: string;
  allow_admin: number;
  draining: number;
  version: string;
  /** JSON list of objects. */
  engines: string;
  max_runs: number;
  work_root: string;
  place: string;
  process: string;
  epoch: number;
  last_seen_at: number | null;
}

const ROW = `id, name, labels, allow_admin, draining, version, engines, max_runs, work_root, place, process,
  epoch, last_seen_at`;

/** The row of a runner, or null. */
export function findRunnerRow(db: Database, id: string): Promise<RunnerRow | null> {
  return db.first<RunnerRow>(`select ${ROW} from runner where id = ?`, [id]);
}

/** Those runners of these names that there are, or with null all, the oldest first. There are RUNNERS_MAX at most. */
export function listRunnerRows(db: Database, names: readonly string[] | null = null): Promise<RunnerRow[]> {
  if (names === null) return db.read<RunnerRow>(`select ${ROW} from runner order by id`);
  return db.read<RunnerRow>(
    `select ${ROW} from runner where name_key in (select value from json_each(?)) order by id`,
    [JSON.stringify(names.map(nameKey))],
  );
}

/** A runner was heard of, by the process that has this epoch; with a claim, it says what it can do. Guarded by the epoch. */
export function seeRunner(id: string, epoch: number, now: number, claim?: RunnerClaim): Statement[] {
  return guarded(
    `update runner
    set last_seen_at = ?, version = coalesce(?, version), engines = coalesce(?, engines),
      max_runs = coalesce(?, max_runs)
    where id = ? and epoch = ?`,
    [
      now,
      claim?.version ?? null,
      claim === undefined ? null : JSON.stringify(claim.engines),
      claim?.max_runs ?? null,
      id,
      epoch,
    ],
  );
}

/** Another process runs as this runner from here on: what the one before it had is lost. Guarded by the epoch before. */
export function takeRunner(row: RunnerRow, claim: RunnerClaim, now: number): Statement[] {
  const { version, engines, max_runs, work_root, place, process } = claim;
  return [
    ...guarded(
      `update runner
      set version = ?, engines = ?, max_runs = ?, work_root = ?, place = ?, process = ?, epoch = epoch + 1,
        last_seen_at = ?
      where id = ? and epoch = ?`,
      [version, JSON.stringify(engines), max_runs, work_root, place, process, now, row.id, row.epoch],
    ),
    {
      sql: "update remote_run set lease_until = 0 where runner_id = ? and lease_until is not null",
      args: [row.id],
      wakeup: WAKEUP.rescuer,
    },
  ];
}
