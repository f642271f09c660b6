import { api, askPage, type Task } from "../../live/api.ts";
import { filtersOf, useAddress } from "../../live/address.ts";
import { useList } from "../../live/resource.ts";
import { workers } from "../../live/workers.ts";
import { Choice } from "../../parts/field.tsx";
import { Heading } from "../../parts/heading.tsx";
import { Empty, Loading, Waiting } from "../../parts/notice.tsx";
import { Rows } from "../../parts/rows.tsx";
import { statusWord } from "../../parts/status.tsx";
import { TaskRow } from "./task_row.tsx";
import { WorkTabs } from "./work_tabs.tsx";

const STATUSES = ["scheduled", "pending", "running", "completed", "failed", "cancelled"] as const;
const TYPES = [["", "Every kind"], ["immediate", "At once"], ["countdown", "At a time"], [
  "scheduled",
  "Repeating",
]] as const;
const PAGE_SIZE = 100;
const ROW_PX = 60;

/** Work, as tasks: what one worker has, had and will have to do (contract 17). */
export function TasksPage() {
  const [{ status, type, worker }, change] = useAddress("status", "type", "worker");
  const all = workers.value;
  const chosen = worker === "" ? all?.[0]?.id ?? "" : worker;
  return (
    <>
      <Heading title="Work" />
      <WorkTabs current="/console/tasks" />
      <div class="filters">
        <Choice
          bare
          label="Worker"
          value={chosen}
          onChange={(value) => change({ worker: value })}
          options={(all ?? []).map(({ id, name }) => [id, name] as const)}
        />
        <Choice
          bare
          label="Status"
          value={status}
          onChange={(value) => change({ status: value })}
          options={[["", "Every status"], ...STATUSES.map((one) => [one, statusWord(one)] as const)]}
        />
        <Choice
          bare
          label="Kind"
          value={type}
          onChange={(value) => change({ type: value })}
          options={TYPES}
        />
      </div>
      {all === undefined ? <Loading /> : chosen === ""
        ? (
          <Empty title="There is no worker yet.">
            <a class="button primary" href="/console/workers/new">Make a worker</a>
          </Empty>
        )
        : <TaskList worker={chosen} status={status} type={type} />}
    </>
  );
}

function TaskList({ worker, status, type }: { worker: string; status: string; type: string }) {
  const list = useList<Task>(
    `${worker} ${status} ${type}`,
    (cursor, signal) =>
      askPage(api.GET("/api/tasks", {
        params: {
          query: {
            page_size: PAGE_SIZE,
            ...filtersOf({ worker_id: worker, status, type, cursor: cursor ?? "" }),
          },
        },
        signal,
      })),
    (event) => event.worker_id === worker && /^(task|execution)\./.test(event.kind),
  );
  const items = list.data;
  if (items === undefined) return <Waiting refusal={list.refusal} />;
  if (items.length === 0) {
    return (
      <Empty title={status === "" && type === "" ? "This worker has had no task yet." : "Nothing matches."}>
        <a class="button" href="/console/chat">Write to it in the chat</a>
      </Empty>
    );
  }
  return (
    <Rows
      label="Tasks"
      count={items.length}
      height={ROW_PX}
      onEnd={list.more}
      row={(index) => {
        const task = items[index];
        return task && <TaskRow task={task} />;
      }}
    />
  );
}
