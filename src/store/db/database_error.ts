import { ServiceError } from "../../domain/call/error.ts";

/** Code and message as one text: a local error has them in two fields, a remote one has the code in its message. */
export function words(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return "code" in error ? `${error.code}: ${error.message}` : error.message;
}

/** Whether another process holds the lock, or the connection is broken by such a lock (facts, libSQL 13). */
export function isBusy(error: unknown): boolean {
  return /SQLITE_(BUSY|LOCKED)|SQL statements in progress/.test(words(error));
}

/** Whether a libSQL server had no connection free, and executed nothing (facts, libSQL server 3). */
export function isRefused(error: unknown): boolean {
  return /HTTP status 429/.test(words(error));
}

/** Whether a wait for a foreign lock was given up. */
export function isLockedOut(error: unknown): boolean {
  return error instanceof ServiceError && isBusy(error.extras.cause);
}

/**
 * Whether the database could not be reached, or did not answer. Then it is not known whether a write was committed, and only who
 * asked for it may repeat it: with an Idempotency-Key, or a guard.
 */
export function isOutOfReach(error: unknown): boolean {
  return error instanceof ServiceError && error.code === "unavailable";
}

/** Whether an error says that a row with this unique key is there already. */
export function isDuplicate(error: unknown): boolean {
  return /UNIQUE constraint failed/.test(words(error));
}

/** Whether an error says that a row names another one that is not there. */
export function isMissingReference(error: unknown): boolean {
  return /FOREIGN KEY constraint failed/.test(words(error));
}

/** Whether an error says that a guard was lost (architecture, sentence 3). By text: a server sends no extended code. */
export function isLostGuard(error: unknown): boolean {
  return words(error).includes("guard_lost");
}

/** Why a server that was silent for too long may not write. */
export const TAKEN_OVER = "another server has taken it over";

/** Whether an error says that the database has another owner by now. */
export function isFencedOff(error: unknown): boolean {
  return words(error).includes("NOT NULL constraint failed: guard.held");
}

/** Whether an error says that the database itself is damaged. */
export function isDamage(error: unknown): boolean {
  return /SQLITE_(CORRUPT|NOTADB)|malformed|not a database/i.test(words(error));
}

/** The error of a query or a write as a ServiceError; a broken constraint stays what it is. */
export function mapped(error: unknown): unknown {
  const text = words(error);
  if (isFencedOff(error)) return damaged(TAKEN_OVER, error);
  if (/constraint/i.test(text)) return error;
  if (/SQLITE_FULL|disk is full|ENOSPC|No space left/i.test(text)) {
    return new ServiceError(
      "storage_full",
      "Cannot write: the disk of the database is full; free some space",
      { cause: error },
    );
  }
  if (isDamage(error)) return damaged("it is damaged", error);
  const lost = isBusy(error) ||
    /fetch|network|connect|timed? ?out|SERVER_ERROR|HTTP status (5|429)|IOERR|READONLY|CANTOPEN/i.test(text);
  if (!lost) return error;
  return new ServiceError("unavailable", "Cannot reach the database at the moment; try again", {
    cause: error,
    retry_after_s: 2,
  });
}

/** The error of every write until an operator has repaired the database. */
export function damaged(reason: string, cause?: unknown): ServiceError {
  return new ServiceError(
    "unavailable",
    `Cannot write to the database: ${reason}; the log of the service says what to do`,
    {
      cause,
      retry_after_s: 60,
    },
  );
}

/** The error of an open, in words for the operator. */
export function openError(url: string, error: unknown): ServiceError {
  const reason = words(error);
  const place = url.replace(/^file:/, "").replace(/\/\/[^@/]*@/, "//");
  let detail = `Cannot open the database ${place}: ${reason}`;
  if (isDamage(error)) {
    detail = `Cannot open the database ${place}: it is damaged or not a database. Nothing was changed. ` +
      "Move it away and bring back a backup with: svc restore <file>";
  } else if (/ConnectionFailed|unable to open|CANTOPEN/i.test(reason)) {
    detail =
      `Cannot open the database ${place}: check that its directory exists and that this user may write there`;
  }
  return new ServiceError("unavailable", detail, { cause: error });
}
