import type { Database, Row, Statement } from "../db/database.ts";

/** A provider's own quota period, as its engine said last (contract 14). */
export interface EngineWindow extends Row {
  engine: string;
  name: string;
  /** The part that is used, 0 to 1; more where a provider counts beyond its limit. */
  utilization: number;
  /** Unix ms; null where the engine does not say. */
  resets_at: number | null;
  seen_at: number;
}

/** Every window of every engine: a handful of rows. */
export function listWindows(db: Database): Promise<EngineWindow[]> {
  return db.read<EngineWindow>(
    "select engine, name, utilization, resets_at, seen_at from engine_window order by engine, name",
  );
}

// A provider has a handful; weekly ones are the longest.
const NAMES_MAX = 20;
const NAME_MAX_CHARACTERS = 200;
const UTILIZATION_MAX = 2;
const RESETS_WITHIN_MS = 8 * 86_400_000;

/** Stores what an engine said of a window; the latest word counts. An engine has NAMES_MAX at most, and each is over within days. */
export function saveWindow({ engine, name, utilization, resets_at, seen_at }: EngineWindow): Statement {
  return {
    sql: `insert into engine_window (engine, name, utilization, resets_at, seen_at)
      select ?1, ?2, ?3, ?4, ?5
      where exists (select 1 from engine_window where engine = ?1 and name = ?2)
        or (select count(*) from engine_window where engine = ?1) < ${NAMES_MAX}
      on conflict (engine, name) do update
      set utilization = excluded.utilization, resets_at = excluded.resets_at, seen_at = excluded.seen_at`,
    args: [
      engine,
      name.slice(0, NAME_MAX_CHARACTERS),
      Math.min(Math.max(utilization || 0, 0), UTILIZATION_MAX),
      resets_at === null ? null : Math.trunc(Math.min(resets_at, seen_at + RESETS_WITHIN_MS)),
      seen_at,
    ],
  };
}

/** Forgets what was said of an engine's windows. */
export function forgetWindows(engine: string): Statement {
  return { sql: "delete from engine_window where engine = ?", args: [engine] };
}
