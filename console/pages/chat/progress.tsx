import { CirclePause, LoaderCircle, Square } from "lucide-preact";
import { useEffect, useState } from "preact/hooks";
import { Link } from "wouter-preact";
import { api, load, type Schemas } from "../../live/api.ts";
import { secondNow } from "../../live/clock.ts";
import { onEvent, onReset } from "../../live/events.ts";
import { useLog } from "../../live/log.ts";
import { findWorkerName } from "../../live/workers.ts";
import { stripCodes } from "../../parts/plain_text.ts";
import { Button } from "../../parts/button.tsx";
import { formatDuration } from "../../parts/format.ts";
import { formatHold, formatSentence, HoldLink } from "../work/blocked_notice.tsx";

const LINES_SHOWN = 3;
const LINE_MAX_CHARACTERS = 160;

interface Progress {
  state: "idle" | "received" | "routing" | "queued" | "working";
  /** The task that waits, or null. */
  task: Schemas["Task"] | null;
  worker: string;
  /** The id of the current run, or "". */
  executionId: string;
  since: number;
}

const IDLE: Progress = { state: "idle", task: null, worker: "", executionId: "", since: 0 };
// No event reports that a task is put on hold.
const HOLD_READ_MS = 2_000;

export function useProgress(sessionKey: string): Progress {
  const [progress, setProgress] = useState<Progress>(IDLE);
  useEffect(() => {
    let gone = false;
    const readCurrent = async () => {
      const current = await findProgress(sessionKey);
      // An event may have arrived during the requests, and is newer.
      if (!gone && current.state !== "idle") {
        setProgress((before) => before.state === "working" && current.state !== "working" ? before : current);
      }
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
  const queued = progress.state === "queued";
  useEffect(() => {
    if (!queued) return;
    const timer = setInterval(async () => {
      if (document.hidden) return;
      const current = await findProgress(sessionKey);
      setProgress((before) => before.state === "queued" ? current : before);
    }, HOLD_READ_MS);
    return () => clearInterval(timer);
  }, [queued, sessionKey]);
  return progress;
}

/** Finds the current work of a conversation. Events report only later changes. */
async function findProgress(session_key: string): Promise<Progress> {
  const query = { session_id: session_key, status: "pending,running" };
  const [run] = await load(api.GET("/api/executions", { params: { query } })).catch(() => []);
  if (run !== undefined) {
    return {
      ...{ state: "working", task: null, worker: run.worker_name, executionId: run.id },
      since: run.started_at ?? run.created_at,
    };
  }
  const waiting = { session_key, status: "pending" };
  const task = (await load(api.GET("/api/queue", { params: { query: waiting } })).catch(() => [])).at(-1);
  if (task !== undefined) {
    return { ...IDLE, state: "queued", task, worker: findWorkerName(task.worker_id), since: task.created_at };
  }
  const unrouted = { session_key, status: "received,feeding" };
  const [message] = await load(api.GET("/api/messages/inbound", { params: { query: unrouted } })).catch(
    () => [],
  );
  return message === undefined ? IDLE : { ...IDLE, state: "received", since: message.received_at };
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
        : { ...enter("queued"), task: null, worker: findWorkerName(event.worker_id) };
    case "execution.started":
      return {
        state: "working",
        task: null,
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

/** The current work of a conversation, with the last lines of its log. */
export function ProgressView({ progress, addressee }: { progress: Progress; addressee: string }) {
  const { state, executionId, since } = progress;
  if (state === "idle") return null;
  if (progress.task !== null && formatHold(progress.task) !== "") return <HeldTask task={progress.task} />;
  const params = { path: { id: executionId } };
  return (
    <div class="progress" role="status">
      <p class="progress-head">
        <LoaderCircle size={16} class="spins" aria-hidden="true" />
        <span>{formatProgress(progress, addressee)}</span>
        {state === "working" && (
          <span class="number quiet" aria-hidden="true">
            {formatDuration(Math.max(0, secondNow.value - since))}
          </span>
        )}
        {state === "working" && executionId !== "" && (
          <>
            <Link href={`/console/executions/${executionId}`}>Log</Link>
            <Button
              scope="write:executions"
              class="small"
              icon={Square}
              press={() => load(api.POST("/api/executions/{id}/cancel", { params, body: {} }))}
              done="Stopped"
            >
              Stop
            </Button>
          </>
        )}
      </p>
      {state === "working" && <LastLines executionId={executionId} />}
    </div>
  );
}

/** A task that cannot start, with the reason, and what a user can do. */
function HeldTask({ task }: { task: Schemas["Task"] }) {
  const params = { path: { id: task.id } };
  return (
    <div class="progress held" role="status">
      <p class="progress-head">
        <CirclePause size={16} aria-hidden="true" />
        <strong>{formatHold(task)}</strong>
        <HoldLink task={task} />
        <Link href={`/console/tasks/${task.id}`}>Open task</Link>
        <Button
          scope="write:tasks"
          class="small"
          icon={Square}
          press={() => load(api.POST("/api/tasks/{id}/cancel", { params, body: {} }))}
          done="Task cancelled"
        >
          Cancel
        </Button>
      </p>
      {task.held_by !== null && task.reason !== "" && <p class="hint">{formatSentence(task.reason)}</p>}
    </div>
  );
}

function LastLines({ executionId }: { executionId: string }) {
  const last = useLog(executionId, { tail: LINES_SHOWN }).lines.slice(-LINES_SHOWN);
  if (last.length === 0) return null;
  return (
    <ul class="steps" aria-hidden="true">
      {last.map((line, index) => <li key={index}>{removeTime(line)}</li>)}
    </ul>
  );
}

function removeTime(line: string): string {
  return stripCodes(line).replace(/^\S*\d\d:\d\d:\d\d\S*\s+/, "").slice(0, LINE_MAX_CHARACTERS);
}

function formatProgress({ state, worker }: Progress, addressee: string): string {
  const name = worker === "" ? "A worker" : worker;
  if (state === "working") return `${name} is working`;
  if (state === "queued") return `${name} is next`;
  return addressee === "" ? "Choosing a worker" : `Waiting for ${addressee}`;
}
