import type { Schemas } from "../../live/api.ts";
import { useGet, useList } from "../../live/resource.ts";
import { findWorkerName } from "../../live/workers.ts";
import { takeFirstLine } from "../../parts/format.ts";
import { Row, ShortListing } from "../../parts/listing.tsx";
import { Section } from "../../parts/page.tsx";
import { Ago } from "../../parts/time.tsx";
import { ExecutionList } from "./execution_row.tsx";
import { formatTaskReason } from "./task_table.tsx";

type Task = Schemas["Task"];

const RUNS_READ = 50;

export function TaskRuns({ task }: { task: Task }) {
  // The list has no filter by task, but the worker's runs of the same conversation include them.
  const query = { worker_id: task.worker_id, session_id: task.session_key, page_size: RUNS_READ };
  const read = useGet("/api/executions", { query }, (event) => event.task_id === task.id);
  const data = read.data?.filter((one) => one.task_id === task.id) ?? [];
  if (data.length === 0) return null;
  return (
    <Section title="Runs">
      <ExecutionList list={{ ...read, data }} empty="" />
    </Section>
  );
}

/** The tasks that a task waits for, and those that wait for it. */
export function TaskFamily({ task: { id, after, after_when } }: { task: Task }) {
  const children = useList("/api/tasks", { after: id }, (event) => event.kind.startsWith("task."));
  return (
    <>
      {after.length > 0 && (
        <Section title={after_when === "end" ? "Runs after the end of" : "Runs after the success of"}>
          <ul class="list">
            {after.map((parent) => (
              <li key={parent}>
                <Parent id={parent} />
              </li>
            ))}
          </ul>
        </Section>
      )}
      {(children.data ?? []).length > 0 && (
        <Section title="Tasks that wait for it">
          <ShortListing list={children} empty="" row={(child) => <TaskRow task={child} />} />
        </Section>
      )}
    </>
  );
}

function Parent({ id }: { id: string }) {
  const { data, error } = useGet("/api/tasks/{id}", { path: { id } }, (event) => event.task_id === id);
  if (data !== undefined) return <TaskRow task={data} />;
  return <Row title={id} notes={[error === null ? "" : "deleted"]} />;
}

function TaskRow({ task }: { task: Task }) {
  const { id, status, instruction, worker_id, updated_at } = task;
  return (
    <Row
      href={`/console/tasks/${id}`}
      status={status}
      title={takeFirstLine(instruction)}
      notes={[findWorkerName(worker_id), formatTaskReason(task)]}
      side={<Ago at={updated_at} />}
    />
  );
}
