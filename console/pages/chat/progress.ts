import { useEffect, useState } from "preact/hooks";
import { api, ask, type JournalEvent } from "../../live/api.ts";
import { onEvent, onReset } from "../../live/events.ts";
import { workerName } from "../../live/workers.ts";

/** How far the conversation's current work is (contract 4, Stream). */
export interface Progress {
  state: "idle" | "received" | "routing" | "queued" | "working";
  worker: string;
  /** The run that goes on, or "". */
  executionId: string;
  since: number;
}

const IDLE: Progress = { state: "idle", worker: "", executionId: "", since: 0 };

/** Follows what goes on in a conversation. */
export function useProgress(sessionKey: string): Progress {
  const [progress, setProgress] = useState<Progress>(IDLE);
  useEffect(() => {
    let gone = false;
    // What began before the page was opened.
    const look = async () => {
      const query = { session_id: sessionKey, status: "pending,running" };
      const [run] = await ask(api.GET("/api/executions", { params: { query } })).catch(() => []);
      if (gone || run === undefined) return;
      setProgress({
        state: "working",
        worker: run.worker_name,
        executionId: run.id,
        since: run.started_at ?? run.created_at,
      });
    };
    void look();
    const ends = [
      onEvent((event) => event.session_key === sessionKey && setProgress((before) => after(before, event))),
      onReset(() => (setProgress(IDLE), void look())),
    ];
    return () => {
      gone = true;
      for (const end of ends) end();
    };
  }, [sessionKey]);
  return progress;
}

function after(before: Progress, event: JournalEvent): Progress {
  const step = (state: Progress["state"]) => ({ ...before, state, since: event.at });
  switch (event.kind) {
    case "message.received":
      return before.state === "idle" ? step("received") : before;
    case "message.feeding":
      return before.state === "working" ? before : step("routing");
    case "task.created":
      return before.state === "working" || event.data.status === "scheduled"
        ? before
        : { ...step("queued"), worker: workerName(event.worker_id) };
    case "execution.started":
      return {
        state: "working",
        worker: workerName(event.worker_id),
        executionId: event.execution_id,
        since: event.at,
      };
    case "session.idle":
    case "session.cleared":
      return IDLE;
    default:
      return before;
  }
}
