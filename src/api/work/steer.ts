import { createId } from "../../base/id.ts";
import { ServiceError } from "../../domain/call/error.ts";
import { parseJson } from "../../domain/call/json.ts";
import { pickRunKeys, type RunKeys } from "../../domain/call/run_identity.ts";
import { RUN_STEERS_MAX, type Steer, type SteerCreate } from "../../domain/work/steer.ts";
import { faultPoint } from "../../base/fault_point.ts";
import type { Statement } from "../../store/db/database.ts";
import { record } from "../../store/events/journal.ts";
import { findSteerJson, followUpSteers, insertSteer } from "../../store/work/steer.ts";
import { type Answer, requireFound } from "../call/answer.ts";
import type { Call } from "../call/call.ts";
import { createOnce } from "../call/idempotency.ts";
import { waitFor } from "../call/long_poll.ts";
import type { Deps } from "../call/services.ts";
import { getExecution } from "./execution.ts";

/** How long a request waits until the agent has confirmed the words. */
const CONFIRMED_WITHIN_MS = 2_000;

/**
 * Sends a person's words to a run in progress. Returns when its agent has confirmed them, or after 2 s. The words become a task of the
 * same worker in the same conversation when the run ends without them, or has ended before. Throws `not_found`, or `rate_limited`
 * when the run has too many.
 */
export async function steerExecution(
  deps: Deps<"db" | "clock" | "wakeups" | "lifecycle">,
  call: Call,
  id: string,
  input: SteerCreate,
): Promise<Answer<Steer>> {
  const { db, clock } = deps;
  const execution = parseJson((await getExecution(deps, call, id)).json);
  const keys = pickRunKeys({ ...execution, execution_id: id });
  const answer = await createOnce(deps, call, () => {
    const { statements, steer } = buildSteer(keys, { ...input, by: call.caller.subject }, clock.now());
    return { statements, response: steer, lost: () => buildTooMany(id) };
  });
  faultPoint("steer.accepted");
  const { id: steerId } = parseJson(answer.json);
  const limits = { timeoutMs: CONFIRMED_WITHIN_MS, signal: AbortSignal.timeout(CONFIRMED_WITHIN_MS) };
  return await waitFor(deps, call, limits, async (waiting) => {
    const json = requireFound(await findSteerJson(db, steerId), "steer", steerId);
    const { status, follow_up_task_id } = parseJson(json);
    const isSettled = status === "delivered" || follow_up_task_id !== null;
    return isSettled || waiting !== "on" ? { json } : null;
  });
}

/** Builds the words for a run. They become a task immediately when the run has ended. */
export function buildSteer(
  keys: RunKeys,
  { content, by }: { content: string; by: string },
  now: number,
): { steer: Steer; statements: Statement[] } {
  const steer: Steer = {
    id: createId(),
    execution_id: keys.execution_id,
    worker_id: keys.worker_id,
    session_key: keys.session_key,
    content,
    status: "queued",
    follow_up_task_id: null,
    created_by: by,
    created_at: now,
    delivered_at: null,
  };
  const statements = [
    ...insertSteer({ ...steer, ...keys }),
    record(now, { kind: "execution.steered", ...keys, actor: by, data: { steer_id: steer.id } }),
    ...followUpSteers(keys.execution_id, createId(), now),
  ];
  return { steer, statements };
}

function buildTooMany(id: string): ServiceError {
  return new ServiceError(
    "rate_limited",
    `Cannot steer execution ${id}: it got ${RUN_STEERS_MAX} messages already. Send a new message instead.`,
  );
}
