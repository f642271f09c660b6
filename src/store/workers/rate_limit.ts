import { WAKEUP } from "../../base/wakeups.ts";
import type { RateLimit } from "../../domain/workers/rate_limit.ts";
import type { Database, Statement } from "../db/database.ts";

const COLUMNS = "engine, until, strikes, since, announced";

/** Finds the last rate limit of an engine, also an ended one. Null when its last run had none. */
export function findLimit(db: Database, engine: string): Promise<RateLimit | null> {
  return db.first<RateLimit>(`select ${COLUMNS} from rate_limit where engine = ?`, [engine]);
}

export function listLimits(db: Database, now: number): Promise<RateLimit[]> {
  return db.read<RateLimit>(`select ${COLUMNS} from rate_limit where until > ? order by engine`, [now]);
}

/** Stores a rate limit. Of two concurrent limits the later end applies. */
export function storeLimit(limit: RateLimit): Statement {
  return {
    sql: `insert into rate_limit (${COLUMNS}) values (?, ?, ?, ?, ?)
      on conflict (engine) do update set
        until = max(until, excluded.until), strikes = excluded.strikes, since = excluded.since,
        announced = excluded.announced`,
    args: [limit.engine, limit.until, limit.strikes, limit.since, limit.announced],
  };
}

/** Deletes an ended limit after a run without one. A new limit of another run stays. */
export function deleteEndedLimit(engine: string, now: number): Statement {
  return { sql: "delete from rate_limit where engine = ? and until <= ?", args: [engine, now] };
}

/** Ends a rate limit by hand (contract 14). */
export function deleteLimit(engine: string): Statement {
  return { sql: "delete from rate_limit where engine = ?", args: [engine], wakeup: WAKEUP.dispatcher };
}
