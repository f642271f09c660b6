import { Plus } from "lucide-preact";
import { useAddress } from "../../live/address.ts";
import type { Schemas } from "../../live/api.ts";
import { useAll, useGet } from "../../live/resource.ts";
import { hasScope } from "../../live/session.ts";
import { findWorkerName, listWorkerOptions } from "../../live/workers.ts";
import { LinkButton } from "../../parts/button.tsx";
import { takeFirstLine } from "../../parts/format.ts";
import { FilteredListing, Row } from "../../parts/listing.tsx";
import { Empty } from "../../parts/notice.tsx";
import { Heading } from "../../parts/page.tsx";
import { Status } from "../../parts/status.tsx";
import type { TableSpec } from "../../parts/table.tsx";
import { stripCodes } from "../../parts/plain_text.ts";
import { Ago } from "../../parts/time.tsx";
import { formatLastRun, formatRecurrence, SchedulesPaused } from "./schedule_text.tsx";

type Task = Schemas["Task"];

const STATES = [["", "Upcoming"], ["paused", "Paused"], ["failing", "Failing"], ["ended", "Ended"]] as const;

export function Page() {
  const [values, change] = useAddress("text", "state", "worker");
  const { text, state, worker } = values;
  const list = useAll("/api/schedules", {
    text,
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
      {hasScope("read:system") && <PausedByRestore />}
      <FilteredListing
        filters={[
          { name: "text", label: "Search schedules" },
          { name: "state", label: "State", options: STATES },
          { name: "worker", label: "Worker", options: listWorkerOptions(["", "All workers"]) },
        ]}
        values={values}
        change={change}
        count={list.data && `${list.data.length} total`}
        list={list}
        label="Schedules"
        table={TABLE}
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

function PausedByRestore() {
  const { data, reload } = useGet("/api/system/overview", {}, /^system\./);
  return <SchedulesPaused paused={data?.schedules_paused ?? false} reload={reload} />;
}

function getShownStatus({ paused, status, last_status }: Task): string {
  if (paused) return "paused";
  return last_status === "failed" && status === "scheduled" ? "failed" : status;
}

function isUpcoming({ status, paused }: Task): boolean {
  return status === "scheduled" && !paused;
}

const TABLE: TableSpec<Task> = {
  id: "schedules",
  key: ({ id }) => id,
  href: ({ id }) => `/console/schedules/${id}`,
  name: ({ name, instruction }) => name || takeFirstLine(instruction, 60),
  columns: [
    {
      ...{ id: "schedule", title: "Schedule", width: "minmax(200px, 2fr)" },
      cell: (schedule) => (
        <>
          <Status value={getShownStatus(schedule)} bare />{" "}
          {schedule.name || takeFirstLine(schedule.instruction)}
        </>
      ),
    },
    {
      ...{ id: "worker", title: "Worker", width: "minmax(70px, 130px)", optional: true },
      cell: ({ worker_id }) => findWorkerName(worker_id),
    },
    {
      ...{ id: "repeats", title: "Repeats", width: "minmax(120px, 1fr)", optional: true },
      cell: formatRecurrence,
    },
    {
      ...{ id: "next", title: "Next run", width: "100px", optional: true },
      cell: (schedule) => isUpcoming(schedule) && <Ago at={schedule.next_run_at} />,
    },
    {
      ...{ id: "last", title: "Last run", width: "100px", optional: true },
      cell: ({ last_run_at }) => last_run_at !== null && <Ago at={last_run_at} />,
    },
    {
      ...{ id: "result", title: "Result", width: "minmax(120px, 1.2fr)", optional: true },
      cell: (schedule) => {
        const { last_status, last_error } = schedule;
        const error = takeFirstLine(stripCodes(last_error));
        return last_status === "failed"
          ? (
            <span class="bad-text" title={error}>
              {[formatLastRun(schedule), error].filter(Boolean).join(": ")}
            </span>
          )
          : formatLastRun(schedule);
      },
    },
  ],
};

function ScheduleRow({ schedule }: { schedule: Task }) {
  const { id, name, instruction, worker_id, next_run_at, updated_at } = schedule;
  const upcoming = isUpcoming(schedule);
  return (
    <Row
      href={`/console/schedules/${id}`}
      status={getShownStatus(schedule)}
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
