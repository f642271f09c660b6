import { chatSessionId } from "../../domain/chat/chat.ts";
import { type Explain, EXPLAINED_WORKERS_MAX, type Explanation } from "../../domain/chat/explanation.ts";
import { explainRouting } from "../../domain/chat/routing.ts";
import { findChatSession } from "../../store/chat/chat.ts";
import { listCandidates } from "../../store/workers/worker.ts";
import { type Answer, answer } from "../call/answer.ts";
import type { Deps } from "../call/services.ts";

/** Explains which rule would route a message and how each worker matches. Sends nothing. */
export async function explainMessage(
  { db, bee }: Deps<"db" | "bee">,
  { session_key = "", content }: Explain,
): Promise<Answer<Explanation>> {
  const sessionId = chatSessionId(session_key);
  const session = sessionId === null ? null : await findChatSession(db, sessionId);
  const { rule, route, workers } = explainRouting(content, await listCandidates(db), {
    defaultWorkerId: session?.worker_id ?? null,
    withoutModel: bee.engine === "rules",
  });
  const chosen = route.to === "worker"
    ? workers.find(({ worker }) => worker.id === route.workerId)?.worker
    : undefined;
  return answer({
    rule,
    worker_id: chosen?.id ?? null,
    worker_name: chosen?.name ?? "",
    reason: route.to === "bee" ? `the coordinator\'s model decides (engine ${bee.engine})` : route.reason,
    reply: route.to === "nobody" ? route.text : "",
    workers: workers.slice(0, EXPLAINED_WORKERS_MAX).map(({ worker: { id, name, paused }, shared }) => ({
      id,
      name,
      paused,
      score: shared.length,
      words: shared,
    })),
  });
}
