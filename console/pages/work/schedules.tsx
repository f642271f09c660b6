import { Plus } from "lucide-preact";
import { Link } from "wouter-preact";
import { useAddress } from "../../live/address.ts";
import { api, askAll, askPage, type Task } from "../../live/api.ts";
import { useResource } from "../../live/resource.ts";
import { may } from "../../live/session.ts";
import { workerName } from "../../live/workers.ts";
import { Choice } from "../../parts/field.tsx";
import { firstLine } from "../../parts/format.ts";
import { Heading } from "../../parts/page.tsx";
import { Listing } from "../../parts/listing.tsx";
import { Empty } from "../../parts/notice.tsx";
import { Status } from "../../parts/status.tsx";
import { Ago } from "../../parts/time.tsx";
import { WorkerChoice } from "../../parts/worker_choice.tsx";
import { lastWords, whenWords } from "./schedule_text.ts";

const PAGE_SIZE = 100;
// More than anybody reads; beyond this a filter finds them.
const SHOWN_MAX = 1_000;
const STATES = [
  ["", "Those to come"],
  ["paused", "Paused"],
  ["failing", "Failing"],
  ["ended", "Ended"],
] as const;

/** What runs by itself, the soonest first (contract 15). */
export function SchedulesPage() {
  const [{ state, worker }, change] = useAddress("state", "worker");
  const read = useResource(
    `${state} ${worker}`,
    (signal) => readSchedules({ state, worker }, signal),
    ({ kind }) => /^(task|schedule|execution)\./.test(kind),
  );
  const items = read.data;
  return (
    <>
      <Heading title="Schedules">
        {may("write:tasks") && (
          <Link href="/console/schedules/new" class="button primary">
            <Plus size={16} aria-hidden="true" /> New schedule
          </Link>
        )}
      </Heading>
      <div class="filters">
        <Choice
          bare
          label="State"
          value={state}
          onChange={(value) => change({ state: value })}
          options={STATES}
        />
        <WorkerChoice value={worker} onChange={(value) => change({ worker: value })} />
        {items !== undefined && <p class="count">{items.length} in all</p>}
      </div>
      <Listing
        list={read}
        label="Schedules"
        row={(schedule) => <ScheduleRow schedule={schedule} />}
        empty={
          <Empty title={state === "" && worker === "" ? "Nothing is scheduled." : "Nothing matches."}>
            <p>
              A schedule gives a worker the same instruction again and again, or once, at a time that you
              choose.
            </p>
          </Empty>
        }
      />
    </>
  );
}

function ScheduleRow({ schedule }: { schedule: Task }) {
  const { id, name, instruction, status, paused, worker_id, next_run_at, updated_at, last_status } = schedule;
  const shown = paused ? "paused" : last_status === "failed" && status === "scheduled" ? "failed" : status;
  const coming = status === "scheduled" && !paused;
  return (
    <Link href={`/console/schedules/${id}`} class="row">
      <Status of={shown} bare />
      <span class="row-main">
        <span class="row-title">{name || firstLine(instruction)}</span>
        <span class="row-note">
          {[workerName(worker_id), whenWords(schedule), lastWords(schedule)].filter(Boolean).join(" · ")}
        </span>
      </span>
      <span class="row-side">
        {coming && <span>next</span>}
        <Ago at={coming ? next_run_at : updated_at} />
      </span>
    </Link>
  );
}

function readSchedules(
  { state, worker }: { state: string; worker: string },
  signal: AbortSignal,
): Promise<Task[]> {
  const filter = {
    ...(state === "paused" ? { paused: true } : {}),
    ...(state === "failing" ? { failing: true } : {}),
    ...(worker === "" ? {} : { worker_id: worker }),
    status: state === "ended" ? "completed,failed,cancelled" : "scheduled,pending,running",
  };
  return askAll((cursor) => {
    const query = { ...filter, page_size: PAGE_SIZE, ...(cursor === undefined ? {} : { cursor }) };
    return askPage(api.GET("/api/schedules", { params: { query }, signal }));
  }, SHOWN_MAX);
}
