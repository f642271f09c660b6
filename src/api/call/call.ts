import type { JournalEntry } from "../../domain/system/journal.ts";
import { record } from "../../store/events/journal.ts";
import type { Statement } from "../../store/db/database.ts";
import type { Caller } from "../../domain/call/scope.ts";
import type { AccessEnd } from "./authority.ts";

export interface Call {
  caller: Caller;
  /** Returns why the caller lost access, or null. Long waits call it once a second. */
  findAccessEnd: () => Promise<AccessEnd>;
  /** Value of the header Idempotency-Key, or null. */
  idempotency: IdempotencyKey | null;
  /** The header traceparent of the caller, or "" without a valid one. */
  trace: string;
}

/** Identifies a request that a client may repeat (contract 1.9). */
export interface IdempotencyKey {
  /** Hash of caller, route and key. */
  key: string;
  /** Hash of the input. The same key with another input is a conflict. */
  fingerprint: string;
}

/** Records an event that the caller causes. */
export function recordBy({ caller }: Pick<Call, "caller">, at: number, entry: JournalEntry): Statement {
  return record(at, { ...entry, actor: caller.subject });
}
