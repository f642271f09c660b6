import { Square } from "lucide-preact";
import { useAddress } from "../../live/address.ts";
import { api, load, type Schemas } from "../../live/api.ts";
import { type LiveList, useList } from "../../live/resource.ts";
import { hasScope } from "../../live/session.ts";
import { findWorkerName, listWorkerOptions } from "../../live/workers.ts";
import { Button } from "../../parts/button.tsx";
import { pluralize, takeFirstLine } from "../../parts/format.ts";
import { FilteredListing, Row } from "../../parts/listing.tsx";
import { Empty } from "../../parts/notice.tsx";
import { useSelection } from "../../parts/selection.ts";
import { formatStatus, listStatusOptions } from "../../parts/status.tsx";
import { Ago } from "../../parts/time.tsx";
import { formatCron, TASK_TYPES } from "./schedule_text.tsx";
import { buildTaskTable, formatTaskReason, TaskBulkBar } from "./task_table.tsx";
import { WorkHead } from "./work_head.tsx";

type Task = Schemas["Task"];

const ACTIVE = "scheduled,pending,running";
const ALL = `${ACTIVE},completed,failed,cancelled`;
const STATUSES = [
  ["", "Active"],
  [ALL, "All statuses"],
  ...listStatusOptions("", ALL.split(",")).slice(1),
] as const;
const TYPES: [string, string][] = [["", "All types"], ...Object.entries(TASK_TYPES)];
// The service cancels at most this many tasks in one request.
const CANCEL_MAX = 1_000;

/** The queue, and with a filter the tasks that have ended. */
export function Page() {
  const [values, change] = useAddress("text", "status", "type", "worker");
  const { text, status, type, worker } = values;
  const list = useList(
    "/api/queue",
    { worker_id: worker, status, type, text },
    (event) => (worker === "" || event.worker_id === worker) && /^(task|execution)\./.test(event.kind),
  );
  const selection = useSelection(list.data);
  return (
    <>
      <WorkHead current="/console/tasks" />
      <FilteredListing
        filters={[
          { name: "text", label: "Search tasks" },
          { name: "status", label: "Status", options: STATUSES },
          { name: "worker", label: "Worker", options: listWorkerOptions(["", "All workers"]) },
          { name: "type", label: "Type", options: TYPES },
        ]}
        values={values}
        change={change}
        list={list}
        label="Tasks"
        table={buildTaskTable(hasScope("write:tasks") ? selection : undefined)}
        above={<TaskBulkBar items={list.data ?? []} selection={selection} reload={list.reload} />}
        row={(task) => <TaskRow task={task} />}
        empty={
          <Empty title="The queue is empty.">
            <p>Tasks that have ended are under “All statuses”.</p>
            <button type="button" onClick={() => change({ status: ALL })}>Show all tasks</button>
          </Empty>
        }
      >
        {selection.ids.size === 0 && text === "" && <CancelAllButton filter={values} list={list} />}
      </FilteredListing>
    </>
  );
}

function TaskRow({ task }: { task: Task }) {
  const { id, status, instruction, worker_id, cron, next_run_at, updated_at } = task;
  const scheduled = status === "scheduled";
  return (
    <Row
      href={`/console/tasks/${id}`}
      status={status}
      title={takeFirstLine(instruction)}
      notes={[findWorkerName(worker_id), cron !== "" && formatCron(cron), formatTaskReason(task)]}
      side={
        <>
          {next_run_at !== null && scheduled && <span>next</span>}
          <Ago at={scheduled ? next_run_at : updated_at} />
        </>
      }
    />
  );
}

interface CancelProps {
  filter: { worker: string; status: string; type: string };
  list: LiveList<Task>;
}

/** Cancels all listed tasks. Hidden unless the filter selects a status that can be cancelled. */
function CancelAllButton({ filter: { worker, status, type }, list }: CancelProps) {
  const expected = Number(list.total);
  if (!hasScope("write:tasks") || status !== "pending" && status !== "scheduled") return null;
  if (!(expected > 1 && expected <= CANCEL_MAX)) return null;
  const tasks = pluralize(expected, "task");
  const filter = {
    status,
    ...(worker === "" ? {} : { worker_id: worker }),
    ...(type === "" ? {} : { type: type as Task["type"] }),
  } as const;
  return (
    <Button
      icon={Square}
      confirm={{
        title: `Cancel ${tasks}?`,
        text: `All listed ${formatStatus(status)} tasks of ${
          worker === "" ? "all workers" : findWorkerName(worker)
        } are cancelled and will not run. Current runs continue.`,
        action: `Cancel ${tasks}`,
      }}
      press={() => load(api.POST("/api/queue/cancel", { body: { filter, expected } }))}
      done={`${tasks} cancelled`}
      after={list.reload}
    >
      Cancel all
    </Button>
  );
}
