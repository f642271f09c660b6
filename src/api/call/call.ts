import type { Caller } from "../../domain/call/scope.ts";
import type { Ended } from "./authority.ts";

/** One request as an operation sees it. */
export interface Call {
  caller: Caller;
  /** Whether the caller may go on waiting, and why not; asked once a second by what takes long (contract 9). */
  ended: () => Promise<Ended>;
  /** From the header Idempotency-Key, or null. */
  idempotency: IdempotencyKey | null;
}

/** The identity of a request that may be sent again (contract 1.9). */
export interface IdempotencyKey {
  /** Hash of caller, route and key. */
  key: string;
  /** Hash of the input: the same key with another input is a conflict. */
  fingerprint: string;
}
