import { useEffect, useState } from "preact/hooks";
import { api, load, type Schemas } from "../../live/api.ts";
import { onEvent } from "../../live/events.ts";
import { useResource } from "../../live/resource.ts";
import { hasScope } from "../../live/session.ts";
import { takeFirstLine } from "../../parts/format.ts";

const WORDS_MAX_CHARACTERS = 60;

interface SendNow {
  /** Whether the run takes words during its turn. */
  offered: boolean;
  busy: boolean;
  /** The state of the last words, as a text, or "". */
  outcome: string;
  /** Sends words to the run. Throws ApiError. */
  send: (content: string) => Promise<void>;
  forget: () => void;
}

/** Sends words to the agent of a run in progress, and follows what becomes of them. Without a run, `executionId` is "". */
export function useSendNow(executionId: string): SendNow {
  const [busy, setBusy] = useState(false);
  const [steer, setSteer] = useState<Schemas["Steer"] | null>(null);
  const { data: offered = false } = useResource(executionId, () => canSteer(executionId));
  useEffect(() =>
    onEvent(({ kind, data }) => {
      if (kind !== "execution.steer_delivered") return;
      setSteer((before) =>
        before !== null && before.id === data.steer_id ? { ...before, status: "delivered" } : before
      );
    }), []);
  async function send(content: string): Promise<void> {
    setBusy(true);
    setSteer(null);
    try {
      const params = { path: { id: executionId } };
      setSteer(await load(api.POST("/api/executions/{id}/steer", { params, body: { content } })));
    } finally {
      setBusy(false);
    }
  }
  // After the end of the run, words without confirmation are a task, which the conversation shows as its work.
  const isKnown = steer !== null &&
    (steer.execution_id === executionId || steer.status === "delivered" || steer.follow_up_task_id !== null);
  const outcome = isKnown ? formatOutcome(steer) : "";
  return { offered, busy, outcome, send, forget: () => setSteer(null) };
}

async function canSteer(id: string): Promise<boolean> {
  if (id === "" || !hasScope("write:executions")) return false;
  const { engine: name, worker_id } = await load(
    api.GET("/api/executions/{id}", { params: { path: { id } } }),
  );
  const [worker, engine] = await Promise.all([
    load(api.GET("/api/workers/{id}", { params: { path: { id: worker_id } } })),
    load(api.GET("/api/engines/{name}", { params: { path: { name } } })),
  ]);
  // Words for a run on a runner always become a task.
  return engine.steers && worker.runs_on.length === 0;
}

function formatOutcome({ content, status, follow_up_task_id }: Schemas["Steer"]): string {
  const words = `"${takeFirstLine(content, WORDS_MAX_CHARACTERS)}"`;
  if (follow_up_task_id !== null) return `The run had ended, so this became a task: ${words}`;
  if (status === "delivered") return `Delivered: ${words}`;
  return `${
    status === "sent" ? "Sent, not confirmed yet" : "Not sent yet"
  }; becomes a task if the run ends first: ${words}`;
}
