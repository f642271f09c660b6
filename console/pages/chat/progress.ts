import { useEffect, useState } from "preact/hooks";
import { api, load, type Schemas } from "../../live/api.ts";
import { onEvent, onReset } from "../../live/events.ts";
import { findWorkerName } from "../../live/workers.ts";

export interface Progress {
  state: "idle" | "received" | "routing" | "queued" | "working";
  worker: string;
  /** The current run, or "". */
  executionId: string;
  since: number;
}

const IDLE: Progress = { state: "idle", worker: "", executionId: "", since: 0 };

export function useProgress(sessionKey: string): Progress {
  const [progress, setProgress] = useState<Progress>(IDLE);
  useEffect(() => {
    let gone = false;
    // Finds work that started before the page was opened.
    const readCurrent = async () => {
      const query = { session_id: sessionKey, status: "pending,running" };
      const [run] = await load(api.GET("/api/executions", { params: { query } })).catch(() => []);
      if (gone || run === undefined) return;
      setProgress({
        state: "working",
        worker: run.worker_name,
        executionId: run.id,
        since: run.started_at ?? run.created_at,
      });
    };
    void readCurrent();
    const ends = [
      onEvent((event) =>
        event.session_key === sessionKey && setProgress((before) => applyEvent(before, event))
      ),
      onReset(() => (setProgress(IDLE), void readCurrent())),
    ];
    return () => {
      gone = true;
      for (const end of ends) end();
    };
  }, [sessionKey]);
  return progress;
}

function applyEvent(before: Progress, event: Schemas["Event"]): Progress {
  const enter = (state: Progress["state"]) => ({ ...before, state, since: event.at });
  switch (event.kind) {
    case "message.received":
      return before.state === "idle" ? enter("received") : before;
    case "message.feeding":
      return before.state === "working" ? before : enter("routing");
    case "task.created":
      return before.state === "working" || event.data.status === "scheduled"
        ? before
        : { ...enter("queued"), worker: findWorkerName(event.worker_id) };
    case "execution.started":
      return {
        state: "working",
        worker: findWorkerName(event.worker_id),
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
