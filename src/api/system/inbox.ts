import { INBOX_SINCE_DEFAULT_MS, type InboxItem } from "../../domain/system/inbox.ts";
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
import type { Deps } from "../call/services.ts";

/** Lists everything that needs a person, newest first. */
export async function listInbox(
  { db, clock }: Deps<"db" | "clock">,
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
    kind: "engine_limited",
    at: now,
    title: engine,
    detail: `the provider limits requests until ${new Date(until).toISOString()}`,
    worker_id: "",
    worker_name: "",
    execution_id: "",
    message_id: "",
    session_key: "",
    engine,
    question_id: "",
    task_id: "",
    budget_id: "",
  }));
  return answerList([...limited, ...found.flat()].sort((one, other) => other.at - one.at));
}
