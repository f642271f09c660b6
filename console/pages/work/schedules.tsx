import { Plus } from "lucide-preact";
import { useAddress } from "../../live/address.ts";
import { api, buildQuery, loadAll, type Schemas } from "../../live/api.ts";
import { useResource } from "../../live/resource.ts";
import { hasScope } from "../../live/session.ts";
import { findWorkerName, listWorkerOptions } from "../../live/workers.ts";
import { LinkButton } from "../../parts/button.tsx";
import { takeFirstLine } from "../../parts/format.ts";
import { FilterBar, Listing, NoMatches, Row } from "../../parts/listing.tsx";
import { Empty } from "../../parts/notice.tsx";
import { Heading } from "../../parts/page.tsx";
import { Ago } from "../../parts/time.tsx";
import { formatLastRun, formatRecurrence } from "./schedule_text.tsx";

type Task = Schemas["Task"];

const STATES = [["", "Upcoming"], ["paused", "Paused"], ["failing", "Failing"], ["ended", "Ended"]] as const;

/** The schedules, the next one first. */
export function Page() {
  const [values, change] = useAddress("state", "worker");
  const { state, worker } = values;
  const list = useResource(
    `${state} ${worker}`,
    (signal) => readSchedules(state, worker, signal),
    /^(task|schedule|execution)\./,
  );
  return (
    <>
      <Heading title="Schedules">
        {hasScope("write:tasks") && (
          <LinkButton href="/console/schedules/new" icon={Plus} class="primary">New schedule</LinkButton>
        )}
      </Heading>
      <FilterBar
        filters={[
          { name: "state", label: "State", options: STATES },
          { name: "worker", label: "Worker", options: listWorkerOptions(["", "All workers"]) },
        ]}
        values={values}
        change={change}
        count={list.data && `${list.data.length} total`}
      />
      <Listing
        list={list}
        label="Schedules"
        row={(schedule) => <ScheduleRow schedule={schedule} />}
        empty={state + worker !== ""
          ? <NoMatches clear={() => change({ state: "", worker: "" })} />
          : (
            <Empty title="No schedules yet.">
              <p>A schedule gives a worker an instruction at a time that you choose, once or repeatedly.</p>
            </Empty>
          )}
      />
    </>
  );
}

function ScheduleRow({ schedule }: { schedule: Task }) {
  const { id, name, instruction, status, paused, worker_id, next_run_at, updated_at, last_status } = schedule;
  const failing = last_status === "failed" && status === "scheduled";
  const upcoming = status === "scheduled" && !paused;
  return (
    <Row
      href={`/console/schedules/${id}`}
      status={paused ? "paused" : failing ? "failed" : status}
      title={name || takeFirstLine(instruction)}
      notes={[findWorkerName(worker_id), formatRecurrence(schedule), formatLastRun(schedule)]}
      side={
        <>
          {upcoming && <span>next</span>}
          <Ago at={upcoming ? next_run_at : updated_at} />
        </>
      }
    />
  );
}

function readSchedules(state: string, worker_id: string, signal: AbortSignal): Promise<Task[]> {
  const status = state === "ended" ? "completed,failed,cancelled" : "scheduled,pending,running";
  const filter = {
    ...(state === "paused" ? { paused: true } : {}),
    ...(state === "failing" ? { failing: true } : {}),
  };
  return loadAll((cursor) => {
    const query = { ...filter, ...buildQuery({ worker_id, status }, cursor) };
    return api.GET("/api/schedules", { params: { query }, signal });
  });
}
