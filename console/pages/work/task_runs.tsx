import { api, loadPage, type Schemas } from "../../live/api.ts";
import { useResource } from "../../live/resource.ts";
import { Section } from "../../parts/page.tsx";
import { ExecutionRow } from "./execution_row.tsx";

const RUNS_READ = 50;

/** The runs of a task, newest first. */
export function TaskRuns({ task }: { task: Schemas["Task"] }) {
  const runs = useResource(
    task.id,
    async (signal) => {
      // The list has no filter by task, but the worker's runs of the same conversation include them.
      const query = { worker_id: task.worker_id, session_id: task.session_key, page_size: RUNS_READ };
      const { items } = await loadPage(api.GET("/api/executions", { params: { query }, signal }));
      return items.filter((one) => one.task_id === task.id);
    },
    (event) => event.task_id === task.id,
  );
  if (runs.data === undefined || runs.data.length === 0) return null;
  return (
    <Section title="Runs">
      <div class="list">{runs.data.map((one) => <ExecutionRow key={one.id} execution={one} />)}</div>
    </Section>
  );
}
