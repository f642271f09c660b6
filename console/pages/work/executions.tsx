import { RotateCcw } from "lucide-preact";
import { useAddress } from "../../live/address.ts";
import { api, buildQuery, load, loadAll, loadPage, type Schemas } from "../../live/api.ts";
import { type LiveList, useList } from "../../live/resource.ts";
import { hasScope } from "../../live/session.ts";
import { listWorkerOptions } from "../../live/workers.ts";
import { Button, LinkButton } from "../../parts/button.tsx";
import { confirm } from "../../parts/dialog.tsx";
import { pluralize } from "../../parts/format.ts";
import { FilterBar, Listing, NoMatches } from "../../parts/listing.tsx";
import { Empty } from "../../parts/notice.tsx";
import { Heading } from "../../parts/page.tsx";
import { listStatusOptions } from "../../parts/status.tsx";
import { showToast } from "../../parts/toast.tsx";
import { ExecutionRow } from "./execution_row.tsx";
import { WorkTabs } from "./work_tabs.tsx";

type Execution = Schemas["Execution"];

const STATUSES = ["pending", "running", "completed", "failed"];
// Each retry is a request. More of them would take minutes and cost much.
const RETRY_MAX = 200;

/** The runs of all workers, newest first. */
export function Page() {
  const [values, change] = useAddress("status", "worker", "session");
  const { status, worker, session } = values;
  const filters = { status, worker_id: worker, session_id: session };
  const list = useList<Execution>(
    `${status} ${worker} ${session}`,
    (cursor, signal) =>
      loadPage(api.GET("/api/executions", { params: { query: buildQuery(filters, cursor) }, signal })),
    /^execution\./,
  );
  return (
    <>
      <Heading title="Work" />
      <WorkTabs current="/console/executions" />
      <FilterBar
        filters={[
          { name: "status", label: "Status", options: listStatusOptions("All statuses", STATUSES) },
          { name: "worker", label: "Worker", options: listWorkerOptions(["", "All workers"]) },
        ]}
        values={values}
        change={change}
        count={list.data && `${list.total} total`}
      >
        {session !== "" && (
          <button type="button" class="chip" onClick={() => change({ session: "" })}>
            One conversation ✕
          </button>
        )}
        {status === "failed" && <RetryAllButton filters={filters} list={list} />}
      </FilterBar>
      <Listing
        list={list}
        label="Runs"
        row={(execution) => <ExecutionRow execution={execution} />}
        empty={status + worker + session !== ""
          ? <NoMatches clear={() => change({ status: "", worker: "", session: "" })} />
          : (
            <Empty title="No runs yet.">
              <p>Send a message to a worker in the chat to start one.</p>
              <LinkButton href="/console/chat" class="primary">Open the chat</LinkButton>
            </Empty>
          )}
      />
    </>
  );
}

interface RetryProps {
  filters: { status: string; worker_id: string; session_id: string };
  list: LiveList<Execution>;
}

/** Runs all listed failures again, each once. */
function RetryAllButton({ filters, list }: RetryProps) {
  const total = Number(list.total);
  if (!hasScope("write:executions") || !(total > 1 && total <= RETRY_MAX)) return null;
  async function retryAll(): Promise<void> {
    // Read before the question: the user confirms these runs, not ones that fail meanwhile.
    const failed = await loadAll(
      (cursor) => api.GET("/api/executions", { params: { query: buildQuery(filters, cursor) } }),
      RETRY_MAX,
    );
    if (failed.length === 0 || !await confirmRetry(failed.length)) return;
    let started = 0;
    for (const { id } of failed) {
      const call = load(api.POST("/api/executions/{id}/retry", { params: { path: { id } }, body: {} }));
      // A worker may be deleted; the other runs are started all the same.
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
