import { RotateCcw } from "lucide-preact";
import { useAddress } from "../../live/address.ts";
import { api, buildQuery, load, loadAll, type Schemas } from "../../live/api.ts";
import { type LiveList, useList } from "../../live/resource.ts";
import { hasScope } from "../../live/session.ts";
import { listWorkerOptions } from "../../live/workers.ts";
import { Button, LinkButton } from "../../parts/button.tsx";
import { confirm } from "../../parts/dialog.tsx";
import { pluralize } from "../../parts/format.ts";
import { FilteredListing } from "../../parts/listing.tsx";
import { Empty } from "../../parts/notice.tsx";
import { listStatusOptions } from "../../parts/status.tsx";
import { showToast } from "../../parts/toast.tsx";
import { ExecutionRow } from "./execution_row.tsx";
import { WorkHead } from "./work_head.tsx";

type Execution = Schemas["Execution"];

const STATUSES = ["pending", "running", "completed", "failed"];
// Each retry is a request and a run, so more of them would take minutes and cost much.
const RETRY_MAX = 200;

export function Page() {
  const [values, change] = useAddress("status", "worker", "session");
  const { status, worker, session } = values;
  const filters = { status, worker_id: worker, session_id: session };
  const list = useList("/api/executions", filters, /^execution\./);
  return (
    <>
      <WorkHead current="/console/executions" />
      <FilteredListing
        filters={[
          { name: "status", label: "Status", options: listStatusOptions("All statuses", STATUSES) },
          { name: "worker", label: "Worker", options: listWorkerOptions(["", "All workers"]) },
        ]}
        values={values}
        change={change}
        list={list}
        label="Runs"
        row={(execution) => <ExecutionRow execution={execution} />}
        empty={
          <Empty title="No runs yet.">
            <p>Send a message to a worker in the chat to start one.</p>
            <LinkButton href="/console/chat" class="primary">Open the chat</LinkButton>
          </Empty>
        }
      >
        {session !== "" && (
          <button type="button" class="chip" onClick={() => change({ session: "" })}>
            One conversation ✕
          </button>
        )}
        {status === "failed" && <RetryAllButton filters={filters} list={list} />}
      </FilteredListing>
    </>
  );
}

interface RetryProps {
  filters: { status: string; worker_id: string; session_id: string };
  list: LiveList<Execution>;
}

function RetryAllButton({ filters, list }: RetryProps) {
  const total = Number(list.total);
  if (!hasScope("write:executions") || !(total > 1 && total <= RETRY_MAX)) return null;
  async function retryAll(): Promise<void> {
    // Reads the runs before the question, so that the user does not confirm runs that fail meanwhile.
    const failed = await loadAll(
      (cursor) => api.GET("/api/executions", { params: { query: buildQuery(filters, cursor) } }),
      RETRY_MAX,
    );
    if (failed.length === 0 || !await confirmRetry(failed.length)) return;
    let started = 0;
    for (const { id } of failed) {
      const call = load(api.POST("/api/executions/{id}/retry", { params: { path: { id } }, body: {} }));
      // The retry fails if the worker is deleted. The other runs start nevertheless.
      if (await call.then(() => true, () => false)) started++;
    }
    showToast(`Started ${started} of ${failed.length} runs again`, started < failed.length);
  }
  return <Button icon={RotateCcw} press={retryAll} after={list.reload}>Run all again</Button>;
}

function confirmRetry(count: number): Promise<boolean> {
  return confirm({
    title: `Run ${pluralize(count, "failed run")} again?`,
    text: "Each run gets a new task with the same instruction, and is charged again.",
    action: `Run ${count} again`,
  });
}
