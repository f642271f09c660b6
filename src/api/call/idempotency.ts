import { conflict, type ServiceError } from "../../domain/call/error.ts";
import { faultPoint } from "../../base/fault_point.ts";
import { isDuplicate, type Statement } from "../../store/db/database.ts";
import { findAnswer, insertAnswer } from "../../store/db/idempotency.ts";
import { type Json, jsonOf } from "../../domain/call/json.ts";
import type { Answer } from "./answer.ts";
import type { Call } from "./call.ts";
import type { Deps } from "./services.ts";

/** How long an idempotency key is remembered (contract 1.9). */
const IDEMPOTENCY_TTL_MS = 24 * 60 * 60 * 1000;

/** What a creating operation is going to write, after everything was checked. */
export interface Creation<T> {
  statements: Statement[];
  /** The answer. It is stored in the same batch when the request has an idempotency key. */
  response: T;
  /** What a lost guard means. */
  lost?: () => ServiceError | Promise<ServiceError>;
  /** The error for a name that another object has. */
  duplicate?: () => ServiceError;
  /** Removes what was made outside of the database; called when the batch is not committed. */
  undo?: () => Promise<void>;
}

/**
 * The answer to an earlier request with the same idempotency key, or null (contract 1.9). Throws `conflict` when that request had
 * another input.
 */
export async function findEarlier<T>(
  { db, clock }: Deps<"db" | "clock">,
  { idempotency }: Call,
): Promise<Answer<T> | null> {
  if (idempotency === null) return null;
  const stored = await findAnswer(db, idempotency.key, clock.now() - IDEMPOTENCY_TTL_MS);
  if (stored === null) return null;
  if (stored.fingerprint !== idempotency.fingerprint) {
    throw conflict(
      "Cannot repeat this request: its Idempotency-Key was used with another body; take a new key",
    );
  }
  return { json: stored.response as Json<T>, replayed: true };
}

/** Stores a creation with its answer, in one batch. Throws what `lost` and `duplicate` of the creation make. */
export async function storeCreation<T>(
  { db, clock }: Deps<"db" | "clock">,
  call: Call,
  { statements, response, lost, duplicate, undo }: Creation<T>,
): Promise<Answer<T>> {
  const { idempotency } = call;
  const json = jsonOf(response);
  const now = clock.now();
  const stored = idempotency === null ? [] : insertAnswer(
    idempotency.key,
    { fingerprint: idempotency.fingerprint, status: 0, response: json },
    now,
    now - IDEMPOTENCY_TTL_MS,
  );
  try {
    faultPoint("accept.pre-commit");
    const batch = [...statements, ...stored];
    if (batch.length > 0) {
      await db.writeOr(batch, lost ?? (() => conflict("Cannot create: it was changed meanwhile")));
    }
    faultPoint("accept.post-commit");
  } catch (error) {
    await undo?.();
    if (!isDuplicate(error)) throw error;
    // Of two requests with one key at the same time the other one was first: its answer is also ours.
    const earlier = await findEarlier<T>({ db, clock }, call);
    if (earlier !== null) return earlier;
    throw duplicate === undefined ? error : duplicate();
  }
  return { json };
}
