import { api, askPage, type Execution, type Task } from "../../live/api.ts";
import { useResource } from "../../live/resource.ts";
import { ExecutionRow } from "./execution_row.tsx";

const RUNS_SHOWN = 50;

/** The runs of a task, the latest first. */
export function TaskRuns({ task }: { task: Task }) {
  const runs = useResource<Execution[]>(
    task.id,
    async (signal) => {
      // The list has no filter by task; a worker's runs of the same conversation hold them all.
      const query = { worker_id: task.worker_id, session_id: task.session_key, page_size: RUNS_SHOWN };
      return (await askPage(api.GET("/api/executions", { params: { query }, signal }))).items
        .filter((one) => one.task_id === task.id);
    },
    (event) => event.task_id === task.id,
  );
  if (runs.data === undefined || runs.data.length === 0) return null;
  return (
    <section>
      <h2>Runs</h2>
      <div class="list">
        {runs.data.map((execution) => <ExecutionRow key={execution.id} execution={execution} />)}
      </div>
    </section>
  );
}
