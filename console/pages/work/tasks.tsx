import { Square } from "lucide-preact";
import { useAddress } from "../../live/address.ts";
import { api, load, type Schemas } from "../../live/api.ts";
import { type LiveList, useList } from "../../live/resource.ts";
import { hasScope } from "../../live/session.ts";
import { findWorkerName, listWorkerOptions } from "../../live/workers.ts";
import { Button, LinkButton } from "../../parts/button.tsx";
import { pluralize, takeFirstLine } from "../../parts/format.ts";
import { FilteredListing, Row } from "../../parts/listing.tsx";
import { Empty } from "../../parts/notice.tsx";
import { formatStatus, listStatusOptions } from "../../parts/status.tsx";
import { Ago } from "../../parts/time.tsx";
import { formatCron, TASK_TYPES } from "./schedule_text.tsx";
import { WorkHead } from "./work_head.tsx";

type Task = Schemas["Task"];

const ACTIVE = ["scheduled", "pending", "running"];
const ALL = [...ACTIVE, "completed", "failed", "cancelled"];
const TYPES: [string, string][] = [["", "All types"], ...Object.entries(TASK_TYPES)];
// The service cancels at most this many tasks in one request.
const CANCEL_MAX = 1_000;

/** The queue of all workers, or all tasks of one worker. */
export function Page() {
  const [values, change] = useAddress("status", "type", "worker");
  const { status, type, worker } = values;
  const list = useList(
    worker === "" ? "/api/queue" : "/api/tasks",
    { worker_id: worker, status, type },
    (event) => (worker === "" || event.worker_id === worker) && /^(task|execution)\./.test(event.kind),
  );
  const states = worker === "" ? ACTIVE : ALL;
  return (
    <>
      <WorkHead current="/console/tasks" />
      <FilteredListing
        filters={[
          { name: "worker", label: "Worker", options: listWorkerOptions(["", "All workers"]) },
          { name: "status", label: "Status", options: listStatusOptions("All statuses", states) },
          { name: "type", label: "Type", options: TYPES },
        ]}
        values={values}
        // A worker's tasks have other statuses than the queue.
        change={(next) => change(next.worker === undefined ? next : { ...next, status: "" })}
        list={list}
        label="Tasks"
        row={(task) => <TaskRow task={task} />}
        keep={["worker"]}
        empty={
          <Empty title={worker === "" ? "The queue is empty." : "No tasks yet."}>
            <LinkButton href="/console/chat">Open the chat</LinkButton>
          </Empty>
        }
      >
        <CancelAllButton filter={values} list={list} />
      </FilteredListing>
    </>
  );
}

function TaskRow({ task }: { task: Task }) {
  const { id, status, instruction, worker_id, reason, cron, next_run_at, updated_at } = task;
  const scheduled = status === "scheduled";
  return (
    <Row
      href={`/console/tasks/${id}`}
      status={status}
      title={takeFirstLine(instruction)}
      notes={[findWorkerName(worker_id), cron !== "" && formatCron(cron), takeFirstLine(reason)]}
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
