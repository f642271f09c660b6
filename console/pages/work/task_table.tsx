import { RotateCcw, Square } from "lucide-preact";
import { api, load, type Schemas } from "../../live/api.ts";
import { hasScope } from "../../live/session.ts";
import { findWorkerName } from "../../live/workers.ts";
import { Button } from "../../parts/button.tsx";
import { pluralize, takeFirstLine } from "../../parts/format.ts";
import type { Selection } from "../../parts/selection.ts";
import { Status } from "../../parts/status.tsx";
import type { TableSpec } from "../../parts/table.tsx";
import { stripCodes } from "../../parts/plain_text.ts";
import { Ago } from "../../parts/time.tsx";
import { formatHold } from "./blocked_notice.tsx";
import { applyToEach, BulkBar } from "./bulk_bar.tsx";
import { formatCron, TASK_TYPES } from "./schedule_text.tsx";

type Task = Schemas["Task"];

/** Returns why a task waits or ended, as one line. */
export function formatTaskReason(task: Task): string {
  const reason = formatHold(task) || takeFirstLine(stripCodes(task.reason));
  return reason === "" && task.paused ? "paused until you resume the schedule" : reason;
}

export function isCancellable({ status, type }: Task): boolean {
  return status === "pending" || status === "scheduled" || status === "running" && type === "scheduled";
}

/** Whether the same task can run again. */
export function isRetriable({ status, type }: Task): boolean {
  return type !== "scheduled" && (status === "failed" || status === "cancelled");
}

function hasFailedRun({ status, execution_id }: Task): boolean {
  return execution_id !== null && (status === "failed" || status === "cancelled");
}

/** The columns of the tasks. */
export function buildTaskTable(selection: Selection | undefined): TableSpec<Task> {
  return {
    id: "tasks",
    key: ({ id }) => id,
    href: ({ id }) => `/console/tasks/${id}`,
    name: ({ instruction }) => takeFirstLine(instruction, 60),
    selection,
    columns: [
      {
        ...{ id: "task", title: "Task", width: "minmax(200px, 2fr)" },
        cell: ({ status, paused, instruction }) => (
          <>
            <Status value={paused ? "paused" : status} bare /> {takeFirstLine(instruction)}
          </>
        ),
      },
      {
        ...{ id: "worker", title: "Worker", width: "minmax(70px, 120px)", optional: true },
        cell: ({ worker_id }) => findWorkerName(worker_id),
      },
      {
        ...{ id: "type", title: "Type", width: "96px", optional: true },
        cell: ({ type }) => TASK_TYPES[type],
      },
      {
        ...{ id: "repeats", title: "Repeats", width: "minmax(60px, 160px)", optional: true },
        cell: ({ cron }) => cron !== "" && formatCron(cron),
      },
      {
        ...{ id: "next", title: "Next run", width: "92px", optional: true },
        cell: ({ status, next_run_at }) => status === "scheduled" && <Ago at={next_run_at} />,
      },
      {
        ...{ id: "updated", title: "Updated", width: "92px", optional: true },
        cell: ({ updated_at }) => <Ago at={updated_at} />,
      },
      {
        ...{ id: "reason", title: "Reason", width: "minmax(140px, 1.5fr)", optional: true },
        cell: (task) => {
          const reason = formatTaskReason(task);
          return <span class={task.status === "failed" ? "bad-text" : ""} title={reason}>{reason}</span>;
        },
      },
    ],
  };
}

interface BulkProps {
  items: readonly Task[];
  selection: Selection;
  reload: () => void;
}

export function TaskBulkBar({ items, selection, reload }: BulkProps) {
  const chosen = items.filter(({ id }) => selection.ids.has(id));
  const waiting = chosen.filter(isCancellable);
  const ended = chosen.filter(hasFailedRun);
  const after = () => (selection.clear(), reload());
  return (
    <BulkBar selection={selection}>
      {ended.length > 0 && hasScope("write:executions") && (
        <Button
          class="small"
          icon={RotateCcw}
          press={() => retryTasks(ended)}
          after={after}
        >
          Run {ended.length} again
        </Button>
      )}
      {waiting.length > 0 && (
        <Button
          class="small"
          icon={Square}
          press={() => cancelTasks(waiting)}
          after={after}
        >
          Cancel {waiting.length}
        </Button>
      )}
    </BulkBar>
  );
}

function retryTasks(tasks: readonly Task[]): Promise<boolean> {
  const count = tasks.length;
  return applyToEach(
    tasks,
    {
      title: `Run ${pluralize(count, "task")} again?`,
      text: "Each gets a new task with the same instruction, and is charged again.",
      action: `Run ${count} again`,
    },
    ({ execution_id }) => {
      const params = { path: { id: execution_id ?? "" } };
      return load(api.POST("/api/executions/{id}/retry", { params, body: {} }));
    },
    (started, all) => `Started ${started} of ${all} tasks again`,
  );
}

function cancelTasks(tasks: readonly Task[]): Promise<boolean> {
  const count = pluralize(tasks.length, "task");
  return applyToEach(
    tasks,
    {
      title: `Cancel ${count}?`,
      text: "They will not run, and schedules stop. Current runs continue, and results so far are kept.",
      action: `Cancel ${count}`,
    },
    ({ id }) => load(api.POST("/api/tasks/{id}/cancel", { params: { path: { id } }, body: {} })),
    (cancelled, all) => `Cancelled ${cancelled} of ${all} tasks`,
  );
}
