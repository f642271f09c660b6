import { conflict, ServiceError } from "../../domain/call/error.ts";
import { faultPoint } from "../../base/fault_point.ts";
import { isDuplicate, type Statement } from "../../store/db/database.ts";
import { findAnswer, insertAnswer } from "../../store/db/idempotency.ts";
import { formatJson, type Json } from "../../domain/call/json.ts";
import type { Answer } from "./answer.ts";
import type { Call } from "./call.ts";
import type { Deps } from "./services.ts";

const IDEMPOTENCY_TTL_MS = 24 * 60 * 60 * 1000;

/** The writes of a create operation after all checks. */
export interface Creation<T> {
  statements: Statement[];
  /** The answer. A request with an idempotency key stores it in the same batch. */
  response: T;
  /** Builds the error for a lost guard. */
  lost?: () => ServiceError | Promise<ServiceError>;
  /** Builds the error for a taken name. */
  duplicate?: () => ServiceError | Promise<ServiceError>;
  /** Removes files of a batch that was not committed. */
  undo?: () => Promise<void>;
}

const PLAN_ATTEMPTS_MAX = 3;

/** Thrown by a plan whose write another request overtook. createOnce() plans again. */
export class RaceError extends ServiceError {}

/** Makes an operation that plans a creation and stores it with createOnce(). */
export function makeIdempotent<D, I extends unknown[], T>(
  plan: (deps: D, call: Call, ...input: I) => Creation<T> | Promise<Creation<T>>,
): (deps: D & Deps<"db" | "clock">, call: Call, ...input: I) => Promise<Answer<T>> {
  return (deps, call, ...input) => createOnce(deps, call, () => plan(deps, call, ...input));
}

/**
 * Stores what `plan` creates and returns its answer. A repeated request gets the earlier answer (contract 1.9). Throws
 * `conflict` when the earlier request had another input, and the errors of `plan`, `lost` and `duplicate`.
 */
export async function createOnce<T>(
  deps: Deps<"db" | "clock">,
  call: Call,
  plan: () => Creation<T> | Promise<Creation<T>>,
): Promise<Answer<T>> {
  for (let attempt = 1;; attempt++) {
    try {
      return await findEarlier<T>(deps, call) ?? await storeCreation(deps, call, await plan());
    } catch (error) {
      if (!(error instanceof RaceError) || attempt === PLAN_ATTEMPTS_MAX) throw error;
    }
  }
}

async function findEarlier<T>(
  { db, clock }: Deps<"db" | "clock">,
  { idempotency }: Call,
): Promise<Answer<T> | null> {
  if (idempotency === null) return null;
  const stored = await findAnswer(db, idempotency.key, clock.now() - IDEMPOTENCY_TTL_MS);
  if (stored === null) return null;
  if (stored.fingerprint !== idempotency.fingerprint) {
    throw conflict(
      "Cannot repeat this request: its Idempotency-Key was used with another body. Use a new key.",
    );
  }
  return { json: stored.response as Json<T>, replayed: true };
}

async function storeCreation<T>(
  { db, clock }: Deps<"db" | "clock">,
  call: Call,
  { statements, response, lost, duplicate, undo }: Creation<T>,
): Promise<Answer<T>> {
  const { idempotency } = call;
  const json = formatJson(response);
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
      await db.writeOr(
        batch,
        lost ?? (() => conflict("Cannot create this: another request changed it first. Try again.")),
      );
    }
    faultPoint("accept.post-commit");
  } catch (error) {
    await undo?.();
    if (!isDuplicate(error)) throw error;
    // A simultaneous request with the same key was first, so return its answer.
    const earlier = await findEarlier<T>({ db, clock }, call);
    if (earlier !== null) return earlier;
    throw duplicate === undefined ? error : await duplicate();
  }
  return { json };
}
