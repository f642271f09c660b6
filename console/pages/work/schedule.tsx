import { Pause, Pencil, Play, Trash2 } from "lucide-preact";
import { Link, useLocation } from "wouter-preact";
import { api, ask, type Task } from "../../live/api.ts";
import { useResource } from "../../live/resource.ts";
import { may } from "../../live/session.ts";
import { workerName } from "../../live/workers.ts";
import type { PageProps } from "../../pages.tsx";
import { Act } from "../../parts/button.tsx";
import { confirmed } from "../../parts/dialog.tsx";
import { Fact, Facts } from "../../parts/facts.tsx";
import { firstLine, plannedText } from "../../parts/format.ts";
import { Absent, Heading } from "../../parts/page.tsx";
import { ShortId } from "../../parts/short_id.tsx";
import { Status } from "../../parts/status.tsx";
import { Ago } from "../../parts/time.tsx";
import { attempt } from "../../parts/toast.tsx";
import { ConversationLink } from "../chat/conversation_link.tsx";
import { HeldNotice } from "./blocked_notice.tsx";
import { TaskRuns } from "./task_runs.tsx";
import { Preview } from "./cron_preview.tsx";
import { whenWords } from "./schedule_text.ts";

const NAME_MAX_CHARACTERS = 60;

const ABOVE = { href: "/console/schedules", name: "Schedules" };

/** One schedule: when it runs next, how it went, and what asks before and after (contract 15). */
export function SchedulePage({ params: { id = "" } }: PageProps) {
  const read = useResource(
    id,
    (signal) => ask(api.GET("/api/tasks/{id}", { params: { path: { id } }, signal })),
    (event) => event.task_id === id,
  );
  const schedule = read.data;
  if (schedule === undefined) return <Absent refusal={read.refusal} above={ABOVE} />;
  const { instruction, cron, time_zone, status, paused, reason } = schedule;
  const open = ["scheduled", "pending", "running"].includes(status);
  return (
    <>
      <Heading
        title={schedule.name || firstLine(instruction, NAME_MAX_CHARACTERS)}
        above={ABOVE}
      >
        {open && may("write:tasks") && <Actions schedule={schedule} reload={read.reload} />}
      </Heading>
      <div class="scrolled">
        {paused && (
          <p class="notice warn">
            It is paused{reason === "" ? "" : `: ${reason}`}. It does not run, and catches up with nothing
            later.
          </p>
        )}
        <HeldNotice task={schedule} />
        <ScheduleFacts schedule={schedule} />
        {schedule.last_error !== "" && (
          <div class="notice bad">
            <p>
              <strong>The last run failed.</strong> {schedule.last_error}
            </p>
          </div>
        )}
        {open && cron !== "" && (
          <section>
            <h2>Next times</h2>
            <Preview cron={cron} zone={time_zone} />
          </section>
        )}
        <section>
          <h2>Instruction</h2>
          <p class="prose">{instruction}</p>
        </section>
        <TaskRuns task={schedule} />
      </div>
    </>
  );
}

function ScheduleFacts({ schedule }: { schedule: Task }) {
  const { worker_id, status, paused, last_status, last_run_at, next_run_at, gate, verify, deliver_to } =
    schedule;
  return (
    <Facts>
      <Fact name="Status">
        <Status of={paused ? "paused" : status} />
      </Fact>
      <Fact name="When">{whenWords(schedule)}</Fact>
      <Fact name="Next run">
        {next_run_at !== null && !paused && (
          <>
            {plannedText(next_run_at)}, <Ago at={next_run_at} />
          </>
        )}
      </Fact>
      <Fact name="Last run">
        {last_status !== "" && (
          <>
            <Status of={last_status} /> <Ago at={last_run_at} />
          </>
        )}
      </Fact>
      <Fact name="Worker">
        <Link href={`/console/workers/${worker_id}`}>{workerName(worker_id) || "a deleted worker"}</Link>
      </Fact>
      <Fact name="Due while it runs">
        {{ skip: "it is left out", queue: "one waits", replace: "the run is ended" }[schedule.overlap]}
      </Fact>
      <Fact name="Pauses itself">
        {schedule.pause_after_failures > 0 && `after ${schedule.pause_after_failures} failures in a row`}
      </Fact>
      <Fact name="Ends">{schedule.until !== null && plannedText(schedule.until)}</Fact>
      <Fact name="Runs">
        {schedule.max_runs !== null && `${schedule.runs_ended} of ${schedule.max_runs}`}
      </Fact>
      <Fact name="Gate, before each run" wide>{gate !== null && <code>{gate.command.join(" ")}</code>}</Fact>
      <Fact name="Check, after each run" wide>
        {verify !== null && <code>{verify.command.join(" ")}</code>}
      </Fact>
      <Fact name="Results go to">
        {deliver_to !== "" && <ConversationLink sessionKey={deliver_to} />}
      </Fact>
      <Fact name="Id">
        <ShortId value={schedule.id} what="schedule id" />
      </Fact>
    </Facts>
  );
}

function Actions({ schedule, reload }: { schedule: Task; reload: () => void }) {
  const { id, paused, type } = schedule;
  const [, navigate] = useLocation();
  const params = { path: { id } };
  async function run(): Promise<void> {
    await attempt(() => ask(api.POST("/api/tasks/{id}/run", { params, body: {} })), "It runs now");
    reload();
  }
  async function pause(): Promise<void> {
    await attempt(
      () => ask(api.PUT("/api/tasks/{id}", { params, body: { paused: !paused } })),
      paused ? "It goes on with its next time" : "It is paused",
    );
    reload();
  }
  async function remove(): Promise<void> {
    const yes = await confirmed({
      title: "Delete this schedule?",
      text: "It will not run again. A run that is going on finishes, and its runs so far stay to be read.",
      action: "Delete the schedule",
    });
    if (
      yes &&
      await attempt(() => ask(api.POST("/api/tasks/{id}/cancel", { params, body: {} })), "Deleted")
    ) {
      navigate("/console/schedules");
    }
  }
  return (
    <>
      <Act run={() => run()}>
        <Play size={16} aria-hidden="true" /> Run now
      </Act>
      <Act run={() => pause()}>
        {paused ? <Play size={16} aria-hidden="true" /> : <Pause size={16} aria-hidden="true" />}{" "}
        {paused ? "Resume" : "Pause"}
      </Act>
      <Link href={`/console/schedules/${id}/edit`} class="button">
        <Pencil size={16} aria-hidden="true" /> Edit
      </Link>
      <Act
        class="danger"
        run={() => remove()}
        label={type === "countdown" ? "Delete this task" : "Delete this schedule"}
        title="Delete"
      >
        <Trash2 size={16} aria-hidden="true" />
      </Act>
    </>
  );
}
