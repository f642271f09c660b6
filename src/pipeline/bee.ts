// feeding -> bee_processed, together with the tasks and the reply that the routing decided
import type { Clock } from "../clock.ts";
import { USAGE_UNKNOWN } from "../domain/execution.ts";
import { joinParts, outboundOf, platformOf } from "../domain/message.ts";
import { type Candidate, type Route, routeByRules, routeWithoutModel } from "../domain/routing.ts";
import { newTask, planTask } from "../domain/task.ts";
import { newId } from "../id.ts";
import { finishBeeRun, insertBeeRun } from "../store/bee_run.ts";
import type { Database, Statement } from "../store/database.ts";
import { record, recordIdle } from "../store/journal.ts";
import { type FeedingMessage, finishMessage, listFeeding, listParts } from "../store/inbound.ts";
import { sendMessage } from "../store/outbound.ts";
import { insertTask } from "../store/task.ts";
import { listCandidates } from "../store/worker.ts";
import { BELL, type Bells } from "../wake.ts";
import { Stage } from "./loop.ts";

const MESSAGES_PER_ROUND = 200;

/** The coordinator: turns each message into tasks for workers, or into an answer of its own (contract 4, points 3 and 4). */
export function createBee(options: { db: Database; clock: Clock; bells: Bells }): Stage {
  const { db, clock, bells } = options;
  return new Stage({ name: "bee", bell: BELL.bee, clock, bells, step });

  async function step(): Promise<number> {
    const messages = await listFeeding(db, MESSAGES_PER_ROUND);
    if (messages.length === 0) return Infinity;
    const candidates = await listCandidates(db);
    await Promise.all(messages.map((message) => decide(message, candidates)));
    bells.ring(BELL.dispatcher);
    // Behind each message the next one of its conversation may wait.
    return 0;
  }

  // A lost guard means that the message was cleared or its worker deleted meanwhile; the next round sees which.
  async function decide(message: FeedingMessage, candidates: Candidate[]): Promise<void> {
    const text = joinParts(await listParts(db, message.id));
    const ruled = routeByRules(text, candidates, message.worker_id);
    const route = ruled.to === "bee" ? routeWithoutModel(text, candidates) : ruled;
    const now = clock.now();
    await db.write([
      ...finishMessage(message.id, now),
      ...carryOut(message, route, now),
      recordIdle(now, message.session_key),
    ]);
  }
}

/** Everything that a routing decision brings about, for one batch. */
function carryOut(message: FeedingMessage, route: Route, now: number): Statement[] {
  if (route.to === "bee") return [];
  const runId = newId();
  const keys = { session_key: message.session_key, message_id: message.id };
  const run = {
    id: runId,
    ...keys,
    engine: "rules",
    attempt: message.attempt + 1,
    run_id: "",
    created_at: now,
  };
  const end = {
    status: "completed" as const,
    reason: route.reason,
    reply: route.to === "reply" ? route.text : "",
    task_count: route.to === "worker" ? 1 : 0,
    error: "",
    failure: "" as const,
    usage: USAGE_UNKNOWN,
  };
  return [
    insertBeeRun(run),
    ...finishBeeRun(runId, end, now),
    record(now, { kind: "message.routed", ...keys, actor: "bee", data: { reason: route.reason } }),
    ...(route.to === "worker"
      ? assign(message, route.workerId, route.instruction, now)
      : sendMessage(outboundOf({
        id: newId(),
        ...keys,
        platform: platformOf(message.session_key),
        content: route.text,
        source_type: "bee",
        source_id: runId,
      }, now))),
  ];
}

function assign(message: FeedingMessage, workerId: string, instruction: string, now: number): Statement[] {
  const plan = planTask({ type: "immediate" }, now, "");
  const seed = {
    id: newId(),
    message_id: message.id,
    worker_id: workerId,
    session_key: message.session_key,
    instruction,
    type: "immediate" as const,
    created_by: "bee",
  };
  const task = newTask(seed, plan, now);
  return [
    ...insertTask({ ...task, due_at: plan.due_at, parent_task_id: null, depth: 0 }),
    record(now, {
      kind: "task.created",
      session_key: task.session_key,
      worker_id: workerId,
      task_id: task.id,
      message_id: message.id,
      actor: "bee",
      data: { type: task.type, status: task.status },
    }),
  ];
}
