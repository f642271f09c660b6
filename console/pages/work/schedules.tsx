import { Plus } from "lucide-preact";
import { useAddress } from "../../live/address.ts";
import type { Schemas } from "../../live/api.ts";
import { useAll } from "../../live/resource.ts";
import { findWorkerName, listWorkerOptions } from "../../live/workers.ts";
import { LinkButton } from "../../parts/button.tsx";
import { takeFirstLine } from "../../parts/format.ts";
import { FilteredListing, Row } from "../../parts/listing.tsx";
import { Empty } from "../../parts/notice.tsx";
import { Heading } from "../../parts/page.tsx";
import { Ago } from "../../parts/time.tsx";
import { formatLastRun, formatRecurrence } from "./schedule_text.tsx";

type Task = Schemas["Task"];

const STATES = [["", "Upcoming"], ["paused", "Paused"], ["failing", "Failing"], ["ended", "Ended"]] as const;

export function Page() {
  const [values, change] = useAddress("state", "worker");
  const { state, worker } = values;
  const list = useAll("/api/schedules", {
    worker_id: worker,
    status: state === "ended" ? "completed,failed,cancelled" : "scheduled,pending,running",
    paused: state === "paused" ? "true" : "",
    failing: state === "failing" ? "true" : "",
  }, /^(task|schedule|execution)\./);
  return (
    <>
      <Heading title="Schedules">
        <LinkButton href="/console/schedules/new" icon={Plus} class="primary" scope="write:tasks">
          New schedule
        </LinkButton>
      </Heading>
      <FilteredListing
        filters={[
          { name: "state", label: "State", options: STATES },
          { name: "worker", label: "Worker", options: listWorkerOptions(["", "All workers"]) },
        ]}
        values={values}
        change={change}
        count={list.data && `${list.data.length} total`}
        list={list}
        label="Schedules"
        row={(schedule) => <ScheduleRow schedule={schedule} />}
        empty={
          <Empty title="No schedules yet.">
            <p>A schedule gives a worker an instruction at a time that you choose, once or repeatedly.</p>
          </Empty>
        }
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
