import type { Schemas } from "../../live/api.ts";
import { useGet } from "../../live/resource.ts";
import { Section } from "../../parts/page.tsx";
import { ExecutionList } from "./execution_row.tsx";

const RUNS_READ = 50;

export function TaskRuns({ task }: { task: Schemas["Task"] }) {
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
