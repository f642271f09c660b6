import { Pause, Pencil, Play, Trash2 } from "lucide-preact";
import { Link, useLocation } from "wouter-preact";
import type { PageProps } from "../../live/address.ts";
import { api, load, type Schemas } from "../../live/api.ts";
import { useGet } from "../../live/resource.ts";
import { hasScope } from "../../live/session.ts";
import { findWorkerName } from "../../live/workers.ts";
import { Button, LinkButton } from "../../parts/button.tsx";
import { formatPlannedTime, takeFirstLine } from "../../parts/format.ts";
import { Notice } from "../../parts/notice.tsx";
import { DetailPage, Facts, Section } from "../../parts/page.tsx";
import { ShortId } from "../../parts/short_id.tsx";
import { Status } from "../../parts/status.tsx";
import { Ago } from "../../parts/time.tsx";
import { ConversationLink } from "../chat/conversation_link.tsx";
import { BlockedNotice } from "./blocked_notice.tsx";
import { CronPreview } from "./cron_preview.tsx";
import { formatRecurrence, isRecurring, NextRun, OVERLAPS } from "./schedule_text.tsx";
import { TaskRuns } from "./task_runs.tsx";

type Task = Schemas["Task"];

const NAME_MAX_CHARACTERS = 60;

export function Page({ params: { id = "" } }: PageProps) {
  const read = useGet("/api/tasks/{id}", { path: { id } }, (event) => event.task_id === id);
  return (
    <DetailPage
      read={read}
      above={{ href: "/console/schedules", name: "Schedules" }}
      title={({ name, instruction }) => name || takeFirstLine(instruction, NAME_MAX_CHARACTERS)}
      actions={(schedule) =>
        isOpen(schedule) && hasScope("write:tasks") && <Actions schedule={schedule} reload={read.reload} />}
    >
      {(schedule) => <Details schedule={schedule} />}
    </DetailPage>
  );
}

/** Formats a reason as the end of a sentence that starts with "Paused". */
function describePause(reason: string): string {
  if (reason === "") return "";
  return reason.startsWith("paused ") ? reason.slice("paused".length) : `: ${reason}`;
}

function isOpen({ status }: Task): boolean {
  return ["scheduled", "pending", "running"].includes(status);
}

function Details({ schedule }: { schedule: Task }) {
  const { instruction, cron, time_zone, paused, reason, last_error } = schedule;
  return (
    <>
      {paused && (
        <Notice tone="warn">
          Paused{describePause(reason)}. Runs that are due meanwhile are skipped.
        </Notice>
      )}
      <BlockedNotice task={schedule} />
      <ScheduleFacts schedule={schedule} />
      {last_error !== "" && (
        <Notice tone="bad">
          <strong>The last run failed.</strong> {last_error}
        </Notice>
      )}
      {isOpen(schedule) && cron !== "" && (
        <Section
          title={`${paused ? "Upcoming if resumed" : "Upcoming"}${
            time_zone === "" ? "" : `, ${time_zone} time`
          }`}
        >
          <CronPreview cron={cron} zone={time_zone} />
        </Section>
      )}
      <Section title="Instruction">
        <p class="prose">{instruction}</p>
      </Section>
      <TaskRuns task={schedule} />
    </>
  );
}

function ScheduleFacts({ schedule }: { schedule: Task }) {
  const { worker_id, status, paused, last_status, next_run_at, gate, verify, deliver_to, max_runs } =
    schedule;
  const failures = schedule.pause_after_failures;
  return (
    <Facts
      values={{
        "Status": <Status value={paused ? "paused" : status} />,
        "Repeats": formatRecurrence(schedule),
        "Next run": next_run_at !== null && !paused && <NextRun at={next_run_at} />,
        "Last run": last_status !== "" && (
          <>
            <Status value={last_status} /> <Ago at={schedule.last_run_at} />
          </>
        ),
        "Worker": (
          <Link href={`/console/workers/${worker_id}`}>{findWorkerName(worker_id) || "deleted worker"}</Link>
        ),
        "Overlap policy": OVERLAPS[schedule.overlap],
        "Pauses after": failures > 0 && `${failures} consecutive failures`,
        "End": schedule.until !== null && formatPlannedTime(schedule.until),
        "Runs": max_runs !== null && `${schedule.runs_ended} of ${max_runs}`,
        "Gate command": gate !== null && <code>{gate.command.join(" ")}</code>,
        "Check command": verify !== null && <code>{verify.command.join(" ")}</code>,
        "Results conversation": deliver_to !== "" && <ConversationLink sessionKey={deliver_to} />,
        "ID": <ShortId value={schedule.id} subject="schedule id" />,
      }}
      wide={["Gate command", "Check command"]}
    />
  );
}

function Actions({ schedule: { id, paused, type }, reload }: { schedule: Task; reload: () => void }) {
  const [, navigate] = useLocation();
  const params = { path: { id } };
  return (
    <>
      <Button
        icon={Play}
        press={() => load(api.POST("/api/tasks/{id}/run", { params, body: {} }))}
        done="Run started"
        after={reload}
      >
        Run now
      </Button>
      <Button
        icon={paused ? Play : Pause}
        press={() => load(api.PUT("/api/tasks/{id}", { params, body: { paused: !paused } }))}
        done={paused ? "Resumed" : "Paused"}
        after={reload}
      >
        {paused ? "Resume" : "Pause"}
      </Button>
      <LinkButton href={`/console/schedules/${id}/edit`} icon={Pencil}>Edit</LinkButton>
      <Button
        class="danger"
        icon={Trash2}
        label={isRecurring(type) ? "Delete this schedule" : "Delete this task"}
        title="Delete"
        confirm={{
          title: "Delete this schedule?",
          text: "It will not run again. A current run finishes, and the history is kept.",
          action: "Delete schedule",
        }}
        press={() => load(api.POST("/api/tasks/{id}/cancel", { params, body: {} }))}
        done="Deleted"
        after={(succeeded) => succeeded && navigate("/console/schedules")}
      />
    </>
  );
}
