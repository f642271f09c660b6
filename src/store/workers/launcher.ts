import { backoffMs } from "../../base/backoff.ts";
import { WAKEUP } from "../../base/wakeups.ts";
import { FAILED_STARTS_MAX, type LauncherView, START_RETRY } from "../../domain/workers/launcher.ts";
import { type Database, guard, type Statement } from "../db/database.ts";
import { record } from "../events/journal.ts";

/** The failed starts of a launcher. A launcher without any has no row. */
export interface LauncherRow extends Pick<LauncherView, "name" | "failures" | "retry_at" | "last_error"> {
  /** The time of its pause in ms, or null. */
  paused_at: number | null;
}

export function listLauncherRows(db: Database): Promise<LauncherRow[]> {
  return db.read<LauncherRow>("select name, failures, paused_at, retry_at, last_error from launcher");
}

/** Returns the number of open launches of each launcher, and how many of them have a run. */
export function countLaunches(db: Database): Promise<{ launcher: string; open: number; running: number }[]> {
  return db.read(
    `select launcher, sum(state <> 'claimed') as open, sum(state = 'claimed') as running
    from launch
    where ended_at is null
    group by launcher`,
  );
}

/** Stores a failed start: the launcher starts nothing for a while, or until a person resumes it. `before` is its row, if it has one. */
export function storeFailedStart(
  name: string,
  before: LauncherRow | undefined,
  error: string,
  now: number,
): Statement[] {
  const failures = (before?.failures ?? 0) + 1;
  const pauses = failures >= FAILED_STARTS_MAX;
  return [
    {
      sql: `insert into launcher (name, failures, paused_at, retry_at, last_error) values (?, ?, ?, ?, ?)
        on conflict (name) do update set failures = excluded.failures, paused_at = coalesce(paused_at, excluded.paused_at),
          retry_at = excluded.retry_at, last_error = excluded.last_error`,
      args: [name, failures, pauses ? now : null, now + backoffMs(START_RETRY, failures), error],
    },
    ...(pauses && (before?.paused_at ?? null) === null
      ? [record(now, { kind: "launcher.paused", data: { launcher: name, failures, error } })]
      : []),
  ];
}

/** Ends the pause and the failed starts of a launcher. Guarded by its having any. */
export function resumeLauncher(name: string): Statement[] {
  return guard(
    `update launcher
    set failures = 0, paused_at = null, retry_at = null
    where name = ? and (paused_at is not null or failures > 0)`,
    [name],
    WAKEUP.dispatcher,
  );
}

/** Forgets the failed starts of launchers that the configuration no longer has. */
export function deleteOtherLaunchers(names: readonly string[]): Statement {
  return {
    sql: "delete from launcher where name not in (select value from json_each(?))",
    args: [JSON.stringify(names)],
  };
}
