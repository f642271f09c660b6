import { conflict, ServiceError } from "../domain/error.ts";
import { faultPoint } from "../base/fault_point.ts";
import { isDuplicate, isMissingReference, type Statement } from "../store/database.ts";
import { findAnswer, insertAnswer } from "../store/idempotency.ts";
import { type Json, jsonOf } from "../domain/json.ts";
import type { Answer } from "./answer.ts";
import type { Call, IdempotencyKey } from "./call.ts";
import type { Needs } from "./parts.ts";

/** How long an idempotency key is remembered (contract 1.9). */
const IDEMPOTENCY_TTL_MS = 24 * 60 * 60 * 1000;

/** What a creating operation is going to write, after everything was checked. */
export interface Creation<T> {
  statements: Statement[];
  /** The answer. It is stored in the same batch when the request has an idempotency key. */
  response: T;
  /** What a lost guard means. */
  lost?: () => ServiceError | Promise<ServiceError>;
  /** Removes what was made outside of the database; called when the batch is not committed. */
  undo?: () => Promise<void>;
}

/**
 * Runs a creation once for each idempotency key: a repeated request gets the first answer, one with another input is a
 * conflict (contract 1.9). `plan` checks the input and prepares the batch; it is called again when something that the
 * input names was deleted meanwhile.
 */
export async function create<T>(
  needs: Needs<"db" | "clock">,
  call: Call,
  plan: () => Promise<Creation<T>>,
): Promise<Answer<T>> {
  const { idempotency } = call;
  if (idempotency !== null) {
    const earlier = await replay<T>(needs, idempotency);
    if (earlier !== null) return earlier;
  }
  return await checkAgain(() => commit(needs, idempotency, plan));
}

/**
 * Does `work`, and does it once more when something that it names was deleted between its check and its write: the second
 * check then fails with a message that says what is missing.
 */
export async function checkAgain<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!isMissingReference(error)) throw error;
    return await work();
  }
}

async function commit<T>(
  { db, clock }: Needs<"db" | "clock">,
  idempotency: IdempotencyKey | null,
  plan: () => Promise<Creation<T>>,
): Promise<Answer<T>> {
  const { statements, response, lost, undo } = await plan();
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
    // Of two requests with one key at the same time the other one was first: its answer is also ours.
    const earlier = idempotency !== null && isDuplicate(error)
      ? await replay<T>({ db, clock }, idempotency)
      : null;
    if (earlier !== null) return earlier;
    throw error;
  }
  return { json };
}

async function replay<T>(
  { db, clock }: Needs<"db" | "clock">,
  idempotency: IdempotencyKey,
): Promise<Answer<T> | null> {
  const stored = await findAnswer(db, idempotency.key, clock.now() - IDEMPOTENCY_TTL_MS);
  if (stored === null) return null;
  if (stored.fingerprint !== idempotency.fingerprint) {
    throw conflict(
      "Cannot repeat this request: its Idempotency-Key was used with another body; take a new key",
    );
  }
  return { json: stored.response as Json<T>, replayed: true };
}
