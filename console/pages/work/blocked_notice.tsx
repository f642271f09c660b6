import { Link } from "wouter-preact";
import type { Schemas } from "../../live/api.ts";
import { now } from "../../live/clock.ts";
import { hasScope } from "../../live/session.ts";
import { workers } from "../../live/workers.ts";
import { formatUntil, pluralize } from "../../parts/format.ts";
import { Notice } from "../../parts/notice.tsx";

type Task = Schemas["Task"];
type Block = NonNullable<Task["held_by"]>;

const KINDS: Record<Block["kind"], string> = {
  budget: "budget used up",
  engine: "provider limit reached",
  launch: "its job has not started",
  run_limit: "run limit reached",
  runner: "no runner available",
  task: "other tasks have to end first",
};

/** Says what holds a task and until when, e.g. "On hold: budget used up, resumes in 24 h". Returns "" if nothing does. */
export function formatHold(task: Task): string {
  const { held_by } = task;
  if (held_by !== null) {
    const { kind, until, ids = [] } = held_by;
    if (kind === "task") return `Waits for ${pluralize(ids.length, "task")}`;
    return `On hold: ${KINDS[kind]}${until === null ? "" : `, resumes ${formatUntil(until, now.value)}`}`;
  }
  const paused = findPausedWorker(task);
  return paused === undefined ? "" : `On hold: ${paused.name} is paused`;
}

// The service blocks no task of a paused worker; its tasks only do not start.
function findPausedWorker({ status, worker_id }: Task): Schemas["Worker"] | undefined {
  if (status !== "pending") return undefined;
  return workers.value?.find(({ id, paused }) => id === worker_id && paused);
}

/** A link to the page where a user can end the block of a task. */
export function HoldLink({ task }: { task: Task }) {
  const { held_by, worker_id } = task;
  if (held_by === null) return <Link href={`/console/workers/${worker_id}`}>Open worker</Link>;
  if (held_by.kind === "runner" || held_by.kind === "launch") {
    return hasScope("read:runners") && <Link href="/console/runners">Open runners</Link>;
  }
  if (held_by.kind === "task") return <Link href={`/console/tasks/${held_by.id}`}>Open task</Link>;
  return hasScope("read:budgets") && <Link href="/console/budgets">Open budgets</Link>;
}

export function BlockedNotice({ task }: { task: Task }) {
  const hold = formatHold(task);
  if (hold === "") return null;
  const { held_by, reason } = task;
  return (
    <Notice tone="warn">
      <strong>{hold}.</strong> {held_by !== null && reason !== "" && `${formatSentence(reason)} `}
      <HoldLink task={task} />
    </Notice>
  );
}

/** Formats a reason, which starts in lower case, as a sentence. */
export function formatSentence(reason: string): string {
  const text = `${reason[0]?.toUpperCase() ?? ""}${reason.slice(1)}`;
  return /[.!?]$/.test(text) ? text : `${text}.`;
}
