import { api, askPage, type Execution } from "../../live/api.ts";
import { filtersOf, useAddress } from "../../live/address.ts";
import { useList } from "../../live/resource.ts";
import { Choice } from "../../parts/field.tsx";
import { Heading } from "../../parts/page.tsx";
import { Listing } from "../../parts/listing.tsx";
import { Empty } from "../../parts/notice.tsx";
import { statusWord } from "../../parts/status.tsx";
import { WorkerChoice } from "../../parts/worker_choice.tsx";
import { ExecutionRow } from "./execution_row.tsx";
import { RetryAll } from "./retry_all.tsx";
import { WorkTabs } from "./work_tabs.tsx";

const STATUSES = ["pending", "running", "completed", "failed"] as const;
const PAGE_SIZE = 100;

/** Work, as runs: every execution of a worker, newest first, with filters in the address (contract 17). */
export function ExecutionsPage() {
  const [{ status, worker, session }, change] = useAddress("status", "worker", "session");
  const list = useList<Execution>(
    `${status} ${worker} ${session}`,
    (cursor, signal) =>
      askPage(api.GET("/api/executions", {
        params: {
          query: {
            page_size: PAGE_SIZE,
            ...filtersOf({ status, worker_id: worker, session_id: session, cursor: cursor ?? "" }),
          },
        },
        signal,
      })),
    ({ kind }) => kind.startsWith("execution."),
  );
  return (
    <>
      <Heading title="Work" />
      <WorkTabs current="/console/executions" />
      <div class="filters">
        <Choice
          bare
          label="Status"
          value={status}
          onChange={(value) => change({ status: value })}
          options={[["", "Every status"], ...STATUSES.map((one) => [one, statusWord(one)] as const)]}
        />
        <WorkerChoice value={worker} onChange={(value) => change({ worker: value })} />
        {session !== "" && (
          <button type="button" class="chip" onClick={() => change({ session: "" })}>
            One conversation only ✕
          </button>
        )}
        {list.data !== undefined && <p class="count">{list.total} in all</p>}
        {status === "failed" && <RetryAll worker={worker} session={session} list={list} />}
      </div>
      <Listing
        list={list}
        label="Runs"
        row={(execution) => <ExecutionRow execution={execution} />}
        empty={
          <NoExecutions
            filtered={status !== "" || worker !== "" || session !== ""}
            clear={() => change({ status: "", worker: "", session: "" })}
          />
        }
      />
    </>
  );
}

function NoExecutions({ filtered, clear }: { filtered: boolean; clear: () => void }) {
  if (filtered) {
    return (
      <Empty title="Nothing matches.">
        <button type="button" onClick={clear}>Show all</button>
      </Empty>
    );
  }
  return (
    <Empty title="Nothing has run yet.">
      <p>Write to a worker in the chat, and its run appears here.</p>
      <a class="button primary" href="/console/chat">Open the chat</a>
    </Empty>
  );
}
