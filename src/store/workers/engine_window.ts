import type { Database, Statement } from "../db/database.ts";

/** A provider's own quota period, as its engine last reported it (contract 14). */
export interface EngineWindow {
  engine: string;
  name: string;
  /** The used part, 0 to 1, or more if a provider counts beyond its limit. */
  utilization: number;
  /** Unix ms, null if the engine does not report it. */
  resets_at: number | null;
  seen_at: number;
}

export function listWindows(db: Database): Promise<EngineWindow[]> {
  return db.read<EngineWindow>(
    "select engine, name, utilization, resets_at, seen_at from engine_window order by engine, name",
  );
}

// A provider has a few windows. The longest are weekly.
const NAMES_MAX = 20;
const NAME_MAX_CHARACTERS = 200;
const UTILIZATION_MAX = 2;
const RESETS_WITHIN_MS = 8 * 86_400_000;

/** Stores the last report of a window. An engine has NAMES_MAX windows at most, and each ends within days. */
export function storeWindow({ engine, name, utilization, resets_at, seen_at }: EngineWindow): Statement {
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

export function deleteWindows(engine: string): Statement {
  return { sql: "delete from engine_window where engine = ?", args: [engine] };
}
