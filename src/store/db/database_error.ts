import { ServiceError } from "../../domain/call/error.ts";

/** Returns code and message as one text. A remote error has the code inside its message. */
function formatDatabaseError(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return "code" in error ? `${error.code}: ${error.message}` : error.message;
}

/** Whether another process holds the lock, or such a lock broke the connection (facts, libSQL 13). */
export function isBusy(error: unknown): boolean {
  return /SQLITE_(BUSY|LOCKED)|SQL statements in progress/.test(formatDatabaseError(error));
}

/** Whether a libSQL server had no free connection and executed nothing (facts, libSQL server 3). */
export function isRefused(error: unknown): boolean {
  return /HTTP status 429/.test(formatDatabaseError(error));
}

/** Whether a write stopped waiting for a foreign lock. */
export function isLockedOut(error: unknown): boolean {
  return error instanceof ServiceError && isBusy(error.extras.cause);
}

/** Whether the database did not answer. A write may have been committed, so only its caller may repeat it, with a key or a guard. */
export function isOutOfReach(error: unknown): boolean {
  return error instanceof ServiceError && error.code === "unavailable";
}

export function isDuplicate(error: unknown): boolean {
  return /UNIQUE constraint failed/.test(formatDatabaseError(error));
}

export function isMissingReference(error: unknown): boolean {
  return /FOREIGN KEY constraint failed/.test(formatDatabaseError(error));
}

/** Whether a guard was lost. Matches the text because a server sends no extended code. */
export function isLostGuard(error: unknown): boolean {
  return formatDatabaseError(error).includes("guard_lost");
}

export const TAKEN_OVER = "another server has taken it over";

/** Whether the fence failed: the database has another owner. */
export function isFencedOff(error: unknown): boolean {
  return formatDatabaseError(error).includes("NOT NULL constraint failed: guard.held");
}

export function isDamage(error: unknown): boolean {
  return /SQLITE_(CORRUPT|NOTADB)|malformed|not a database/i.test(formatDatabaseError(error));
}

/** Translates a driver error to a ServiceError. A constraint violation stays as it is. */
export function translateError(error: unknown): unknown {
  const text = formatDatabaseError(error);
  if (isFencedOff(error)) return buildDamageError(TAKEN_OVER, error);
  if (/constraint/i.test(text)) return error;
  if (/SQLITE_FULL|disk is full|ENOSPC|No space left/i.test(text)) {
    const detail = "Cannot write: the disk of the database is full. Free some space";
    return new ServiceError("storage_full", detail, { cause: error });
  }
  if (isDamage(error)) return buildDamageError("it is damaged", error);
  const lost = isBusy(error) ||
    /fetch|network|connect|timed? ?out|SERVER_ERROR|HTTP status (5|429)|IOERR|READONLY|CANTOPEN/i.test(text);
  if (!lost) return error;
  const detail = "Cannot reach the database at the moment. Try again";
  return new ServiceError("unavailable", detail, { cause: error, retry_after_s: 2 });
}

/** Builds the error of every write until an operator has repaired the database. */
export function buildDamageError(reason: string, cause?: unknown): ServiceError {
  const detail = `Cannot write to the database: ${reason}. See the log of the service`;
  return new ServiceError("unavailable", detail, { cause, retry_after_s: 60 });
}

/** Builds the error of a failed open, with advice for the operator. */
export function buildOpenError(url: string, error: unknown): ServiceError {
  const reason = formatDatabaseError(error);
  const place = url.replace(/^file:/, "").replace(/\/\/[^@/]*@/, "//");
  let detail = `Cannot open the database ${place}: ${reason}`;
  if (isDamage(error)) {
    detail = `Cannot open the database ${place}: it is damaged or not a database. Nothing was changed. ` +
      "Move it away and run: svc restore <file>";
  } else if (/ConnectionFailed|unable to open|CANTOPEN/i.test(reason)) {
    detail =
      `Cannot open the database ${place}. Check that its directory exists and that this user may write there`;
  }
  return new ServiceError("unavailable", detail, { cause: error });
}
