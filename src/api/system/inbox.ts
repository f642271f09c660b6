import { mayCall } from "../../domain/call/scope.ts";
import { INBOX_KIND_MAX, INBOX_SINCE_DEFAULT_MS, type InboxItem } from "../../domain/system/inbox.ts";
import {
  findBlockingBudgets,
  findFailedMessages,
  findFailedRuns,
  findOpenQuestions,
  findPausedSchedules,
  findPausedWorkers,
  findUndelivered,
} from "../../store/events/inbox.ts";
import { listLimits } from "../../store/workers/rate_limit.ts";
import { type Answer, answerList } from "../call/answer.ts";
import type { Call } from "../call/call.ts";
import type { Deps } from "../call/services.ts";

/** Lists everything that needs a person, newest first. */
export async function listInbox(
  { db, clock, secrets }: Deps<"db" | "clock" | "secrets">,
  call: Call,
  { since: given }: { since?: number | undefined },
): Promise<Answer<InboxItem[]>> {
  const now = clock.now();
  const since = given ?? now - INBOX_SINCE_DEFAULT_MS;
  const [limits, ...found] = await Promise.all([
    listLimits(db, now),
    findFailedRuns(db, since),
    findFailedMessages(db, since),
    findUndelivered(db, since),
    findPausedWorkers(db),
    findPausedSchedules(db),
    findBlockingBudgets(db, now),
    findOpenQuestions(db),
  ]);
  const limited = limits.map(({ engine, until }): InboxItem => ({
    ...NO_REFERENCES,
    kind: "engine_limited",
    at: now,
    title: engine,
    detail: `the provider limits requests until ${new Date(until).toISOString()}`,
    engine,
  }));
  // Only people who may change secrets see their names.
  const lost = mayCall(call.caller, "write:secrets") ? await secrets.listLost() : [];
  const unreadable = lost.slice(0, INBOX_KIND_MAX).map((name): InboxItem => ({
    ...NO_REFERENCES,
    kind: "secret_lost",
    at: now,
    title: name,
    detail: "another signing key encrypted this secret. Set it again, or restore that key",
  }));
  return answerList([...limited, ...unreadable, ...found.flat()].sort((one, other) => other.at - one.at));
}

const NO_REFERENCES = {
  worker_id: "",
  worker_name: "",
  execution_id: "",
  message_id: "",
  session_key: "",
  engine: "",
  question_id: "",
  task_id: "",
  budget_id: "",
};
