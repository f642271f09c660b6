import { RotateCcw } from "lucide-preact";
import { useAddress } from "../../live/address.ts";
import { api, buildQuery, loadAll, type Schemas } from "../../live/api.ts";
import { type LiveList, useGet, useList } from "../../live/resource.ts";
import { hasScope } from "../../live/session.ts";
import { useTimeRange } from "../../live/time_range.ts";
import { listWorkerOptions } from "../../live/workers.ts";
import { Button, LinkButton } from "../../parts/button.tsx";
import type { Options } from "../../parts/field.tsx";
import { FilteredListing, TIME_FILTER } from "../../parts/listing.tsx";
import { Empty } from "../../parts/notice.tsx";
import { useSelection } from "../../parts/selection.ts";
import { listStatusOptions } from "../../parts/status.tsx";
import { ExecutionRow } from "./execution_row.tsx";
import { FAILURE_OPTIONS } from "./failure.ts";
import { buildExecutionTable, ExecutionBulkBar, retryEach } from "./execution_table.tsx";
import { WorkHead } from "./work_head.tsx";

type Execution = Schemas["Execution"];

const STATUSES = ["pending", "running", "completed", "failed"];
// Each retry is a request and a run, so more of them would take minutes and cost much.
const RETRY_MAX = 200;

export function Page() {
  const [values, change] = useAddress(
    ...["text", "status", "failure", "worker", "engine", "since", "from", "to", "session"] as const,
  );
  const { text, status, failure, worker, engine, session } = values;
  const { from, to } = useTimeRange(values);
  const filters = {
    ...{ text, status, failure, engine, worker_id: worker, session_id: session },
    ...{ started_from: from, started_to: to },
  };
  const list = useList("/api/executions", filters, /^execution\./);
  const selection = useSelection(list.data);
  const table = buildExecutionTable(hasScope("write:executions") ? selection : undefined);
  return (
    <>
      <WorkHead current="/console/executions" />
      <FilteredListing
        filters={[
          { name: "text", label: "Search runs" },
          { name: "status", label: "Status", options: listStatusOptions("All statuses", STATUSES) },
          (status === "failed" || failure !== "") &&
          { name: "failure", label: "Cause of failure", options: [["", "All causes"], ...FAILURE_OPTIONS] },
          { name: "worker", label: "Worker", options: listWorkerOptions(["", "All workers"]) },
          { name: "engine", label: "Engine", options: useEngineOptions() },
          TIME_FILTER,
        ]}
        values={values}
        change={change}
        list={list}
        label="Runs"
        table={table}
        above={<ExecutionBulkBar items={list.data ?? []} selection={selection} reload={list.reload} />}
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
        {(status === "failed" || failure !== "") && selection.ids.size === 0 && (
          <RetryAllButton filters={filters} list={list} />
        )}
      </FilteredListing>
    </>
  );
}

function useEngineOptions(): Options {
  const engines = useGet("/api/engines", {}).data ?? [];
  return [["", "All engines"], ...engines.map(({ name }) => [name, name] as const)];
}

interface RetryProps {
  filters: Record<string, string>;
  list: LiveList<Execution>;
}

function RetryAllButton({ filters, list }: RetryProps) {
  const total = Number(list.total);
  if (!hasScope("write:executions") || !(total > 1 && total <= RETRY_MAX)) return null;
  async function retryAll(): Promise<boolean> {
    // Reads the runs before the question, so that the user does not confirm runs that fail meanwhile.
    const failed = await loadAll(
      (cursor) => api.GET("/api/executions", { params: { query: buildQuery(filters, cursor) } }),
      RETRY_MAX,
    );
    return await retryEach(failed);
  }
  return <Button icon={RotateCcw} press={retryAll} after={list.reload}>Run all {total} again</Button>;
}
