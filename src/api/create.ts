import { conflict, ServiceError } from "../domain/error.ts";
import { faultPoint } from "../base/fault_point.ts";
import { isDuplicate, isMissingReference, type Statement } from "../store/database.ts";
import { findAnswer, insertAnswer } from "../store/idempotency.ts";
import type { Call, IdempotencyKey, Service } from "./service.ts";

/** How long an idempotency key is remembered (contract 1). */
export const IDEMPOTENCY_TTL_MS = 24 * 60 * 60 * 1000;

/** What a creating operation answers: JSON text, and whether it is the answer to an earlier request. */
export interface Created {
  json: string;
  replayed: boolean;
}

/** The work of a creating operation: everything that is checked before, then one batch. */
export interface Creation {
  statements: Statement[];
  /** The answer. It is stored in the same batch when the request has an idempotency key. */
  response: unknown;
  /** What a lost guard means. */
  lost?: () => ServiceError | Promise<ServiceError>;
  /** Removes what was made beside the database; called when the batch is not committed. */
  undo?: () => Promise<void>;
}

/**
 * Runs a creation once per idempotency key: a repeated request gets the first answer, one with another input is a
 * conflict (contract 1). `plan` checks the input and prepares the batch; it is asked again when something that the
 * input names was deleted meanwhile.
 */
export async function create(service: Service, call: Call, plan: () => Promise<Creation>): Promise<Created> {
  const { idempotency } = call;
  if (idempotency !== null) {
    const earlier = await replay(service, idempotency);
    if (earlier !== null) return earlier;
  }
  return await lookAgain(() => commit(service, idempotency, plan));
}

/**
 * Does `work`, and once more when something that it names was deleted between its look and its write: the second look
 * says what is missing, in its own words.
 */
export async function lookAgain<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!isMissingReference(error)) throw error;
    return await work();
  }
}

async function commit(
  service: Service,
  idempotency: IdempotencyKey | null,
  plan: () => Promise<Creation>,
): Promise<Created> {
  const { db, clock } = service;
  const { statements, response, lost, undo } = await plan();
  const json = JSON.stringify(response);
  const now = clock.now();
  const stored = idempotency === null ? [] : insertAnswer(
    idempotency.key,
    { fingerprint: idempotency.fingerprint, status: 0, response: json },
    now,
    now - IDEMPOTENCY_TTL_MS,
  );
  try {
    faultPoint("accept.pre-commit");
    await db.writeOr(
      [...statements, ...stored],
      lost ?? (() => conflict("Cannot create: it was changed meanwhile")),
    );
    faultPoint("accept.post-commit");
  } catch (error) {
    await undo?.();
    // Two requests with one key at once: the other one was first, so its answer is ours, too.
    const earlier = idempotency !== null && isDuplicate(error) ? await replay(service, idempotency) : null;
    if (earlier !== null) return earlier;
    throw error;
  }
  return { json, replayed: false };
}

async function replay(service: Service, idempotency: IdempotencyKey): Promise<Created | null> {
  const stored = await findAnswer(service.db, idempotency.key, service.clock.now() - IDEMPOTENCY_TTL_MS);
  if (stored === null) return null;
  if (stored.fingerprint !== idempotency.fingerprint) {
    throw conflict(
      "Cannot repeat this request: its Idempotency-Key was used with another body; take a new key",
    );
  }
  return { json: stored.response, replayed: true };
}
