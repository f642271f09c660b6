// Message: feeding -> bee_processed without a model, or received -> bee_processed in the commit that feeds it.
import { createId } from "../../base/id.ts";
import { faultPoint } from "../../base/fault_point.ts";
import type { Config } from "../../config/schema.ts";
import { USAGE_UNKNOWN } from "../../domain/work/execution.ts";
import { joinParts } from "../../domain/chat/quiet_window.ts";
import {
  type Candidate,
  findByName,
  type Route,
  routeByRules,
  routeData,
  routeWithoutModel,
} from "../../domain/chat/routing.ts";
import type { RunIdentity } from "../../domain/call/run_identity.ts";
import type { Database, Statement } from "../../store/db/database.ts";
import { insertBeeRun } from "../../store/chat/bee_run.ts";
import { countMessageAttempt } from "../../store/chat/inbound.ts";
import { type FeedingMessage, findMessageToFeed } from "../../store/chat/inbound_feeding.ts";
import { listParts } from "../../store/chat/inbound_part.ts";
import { buildPlan, finishRouting, type Routing } from "./routed_message.ts";

/** Largest message that is routed in the commit that feeds it. Reading a larger one takes a separate turn of the event loop. */
export const IMMEDIATE_MAX_BYTES = 4_096;

type RulesConfig = Pick<Config, "bee" | "platforms">;

/**
 * Finds the recipient of a message by rules. Returns null when the coordinator's model has to decide (contract 4.3). A message of a
 * program is data: mentions in it do not count, and it goes to the worker of its platform (contract 10).
 */
export function findRoute(
  config: RulesConfig,
  message: FeedingMessage,
  text: string,
  candidates: Candidate[],
): Route | null {
  if (message.is_data) {
    return decide(routeData(text, candidates, config.platforms[message.platform]?.worker ?? ""));
  }
  return decide(routeByRules(text, candidates, findDefaultWorker(config, message, candidates)));

  function decide(route: Route): Route | null {
    if (route.to !== "bee") return route;
    return config.bee.engine === "rules" ? routeWithoutModel(text, candidates) : null;
  }
}

/** Finds the worker of a message that names none: the worker of its session, of the message that it replies to, or of its platform. */
export function findDefaultWorker(
  { platforms }: Pick<Config, "platforms">,
  { platform, worker_id }: Pick<FeedingMessage, "platform" | "worker_id">,
  candidates: readonly Candidate[],
): string | null {
  const name = platforms[platform]?.worker ?? "";
  return worker_id ?? (name === "" ? null : findByName(candidates, name)?.id ?? null);
}

/** Builds the batch that routes a message. `counted` means that an earlier batch has already counted this attempt. */
export function buildRoute(
  route: Route,
  message: FeedingMessage,
  counted: boolean,
  now: number,
): Statement[] {
  const run = createAttempt(message);
  return [
    ...(counted ? [] : countMessageAttempt(message.id, run.attempt)),
    // The run of the rules ends in the same batch.
    insertBeeRun({ ...run, run_id: "", engine: "rules", created_at: now }),
    ...finishRouting(message, run.execution_id, buildRuleRouting(route, now), USAGE_UNKNOWN, now),
  ];
}

/**
 * Builds the statements that route a received message in the commit that feeds it. Returns null when an earlier message of its
 * conversation comes first, or a model has to decide. Only for small messages that arrived at this process: a message that crashes the
 * process must count as an attempt at the next start (reliability BYT-4).
 */
export async function routeImmediately(
  { db, config }: { db: Database; config: RulesConfig },
  id: string,
  candidates: () => Promise<Candidate[]>,
  now: number,
): Promise<Statement[] | null> {
  const message = await findMessageToFeed(db, id);
  if (message === null) return null;
  const text = joinParts(await listParts(db, id));
  faultPoint("routing");
  const route = findRoute(config, message, text, await candidates());
  return route === null ? null : buildRoute(route, message, false, now);
}

/** Creates the run of the next routing attempt. */
export function createAttempt(message: FeedingMessage): RunIdentity {
  return {
    session_key: message.session_key,
    worker_id: "",
    task_id: "",
    execution_id: createId(),
    message_id: message.id,
    attempt: message.attempt + 1,
    run_id: crypto.randomUUID(),
  };
}

function buildRuleRouting(route: Route, now: number): Routing {
  if (route.to === "worker") {
    return { plan: buildPlan(route.workerId, route.instruction, now), reason: route.reason, routed: "task" };
  }
  if (route.to === "nobody") {
    return { plan: { reply: route.text, tasks: [] }, reason: route.reason, routed: "nobody" };
  }
  throw new Error("the rules without a model always decide");
}
