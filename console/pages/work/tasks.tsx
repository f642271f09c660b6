import { Square } from "lucide-preact";
import { filtersOf, useAddress } from "../../live/address.ts";
import { api, ask, askPage, type Page, type Task } from "../../live/api.ts";
import { type LiveList, useList } from "../../live/resource.ts";
import { may } from "../../live/session.ts";
import { workerName } from "../../live/workers.ts";
import { Act } from "../../parts/button.tsx";
import { confirmed } from "../../parts/dialog.tsx";
import { Choice } from "../../parts/field.tsx";
import { manyText } from "../../parts/format.ts";
import { Heading } from "../../parts/page.tsx";
import { Listing } from "../../parts/listing.tsx";
import { Empty } from "../../parts/notice.tsx";
import { statusWord } from "../../parts/status.tsx";
import { attempt } from "../../parts/toast.tsx";
import { WorkerChoice } from "../../parts/worker_choice.tsx";
import { TaskRow } from "./task_row.tsx";
import { WorkTabs } from "./work_tabs.tsx";

const ACTIVE = ["scheduled", "pending", "running"] as const;
const ALL = [...ACTIVE, "completed", "failed", "cancelled"] as const;
const TYPES = [
  ["", "Every kind"],
  ["immediate", "At once"],
  ["countdown", "At a time"],
  ["scheduled", "Repeating"],
] as const;
const PAGE_SIZE = 100;
// What the service cancels in one request.
const CANCEL_MAX = 1_000;

interface Filter {
  worker: string;
  status: string;
  type: string;
}

/** Work, as tasks: the queue of all, or everything that one worker has, had and will have to do (contract 17). */
export function TasksPage() {
  const [{ status, type, worker }, change] = useAddress("status", "type", "worker");
  const list = useList<Task>(
    `${worker} ${status} ${type}`,
    (cursor, signal) => readTasks({ worker, status, type }, cursor, signal),
    (event) => (worker === "" || event.worker_id === worker) && /^(task|execution)\./.test(event.kind),
  );
  const filtered = status !== "" || type !== "";
  return (
    <>
      <Heading title="Work" />
      <WorkTabs current="/console/tasks" />
      <div class="filters">
        <WorkerChoice
          value={worker}
          onChange={(value) => change({ worker: value, status: "" })}
          all="All workers"
          words={(name) => name}
        />
        <Choice
          bare
          label="Status"
          value={status}
          onChange={(value) => change({ status: value })}
          options={[
            ["", "Every status"],
            ...(worker === "" ? ACTIVE : ALL).map((one) => [one, statusWord(one)] as const),
          ]}
        />
        <Choice
          bare
          label="Kind"
          value={type}
          onChange={(value) => change({ type: value })}
          options={TYPES}
        />
        {list.data !== undefined && <p class="count">{list.total} in all</p>}
        <CancelAll filter={{ worker, status, type }} list={list} />
      </div>
      <Listing
        list={list}
        label="Tasks"
        row={(task) => <TaskRow task={task} />}
        empty={
          <Empty
            title={filtered
              ? "Nothing matches."
              : worker === ""
              ? "Nothing waits or runs."
              : "It has had no task yet."}
          >
            <a class="button" href="/console/chat">Open the chat</a>
          </Empty>
        }
      />
    </>
  );
}

function readTasks(filter: Filter, cursor: string | undefined, signal: AbortSignal): Promise<Page<Task>> {
  const { worker, status, type } = filter;
  const query = {
    page_size: PAGE_SIZE,
    ...filtersOf({ worker_id: worker, status, type, cursor: cursor ?? "" }),
  };
  return worker === ""
    ? askPage(api.GET("/api/queue", { params: { query }, signal }))
    : askPage(api.GET("/api/tasks", { params: { query }, signal }));
}

/** Cancels everything that is listed, when that is one status which can be cancelled. */
function CancelAll({ filter, list }: { filter: Filter; list: LiveList<Task> }) {
  const { worker, status, type } = filter;
  const expected = Number(list.total);
  if (!may("write:tasks") || status !== "pending" && status !== "scheduled") return null;
  if (!(expected > 1 && expected <= CANCEL_MAX)) return null;
  async function cancel(): Promise<void> {
    const whose = worker === "" ? "of all workers" : `of ${workerName(worker)}`;
    const yes = await confirmed({
      title: `Cancel ${manyText(expected, "task")}?`,
      text: `All ${
        statusWord(status)
      } tasks ${whose} that are listed are cancelled and will not run. What runs now goes on.`,
      action: `Cancel ${manyText(expected, "task")}`,
    });
    if (!yes) return;
    const named = filtersOf({ worker_id: worker, type }) as { worker_id?: string; type?: "immediate" };
    const body = { filter: { ...named, status: status as "pending" }, expected };
    await attempt(
      () => ask(api.POST("/api/queue/cancel", { body })),
      `${manyText(expected, "task")} cancelled`,
    );
    list.reload();
  }
  return (
    <Act run={() => cancel()}>
      <Square size={16} aria-hidden="true" /> Cancel all
    </Act>
  );
}
