import { Play, RotateCcw, Square } from "lucide-preact";
import { Link } from "wouter-preact";
import type { PageProps } from "../../live/address.ts";
import { api, load, type Schemas } from "../../live/api.ts";
import { useGet } from "../../live/resource.ts";
import { hasScope } from "../../live/session.ts";
import { findWorkerName } from "../../live/workers.ts";
import { Button } from "../../parts/button.tsx";
import { formatActor, takeFirstLine } from "../../parts/format.ts";
import { Notice } from "../../parts/notice.tsx";
import { DetailPage, Facts, Section } from "../../parts/page.tsx";
import { ShortId } from "../../parts/short_id.tsx";
import { Status } from "../../parts/status.tsx";
import { Ago } from "../../parts/time.tsx";
import { ConversationLink } from "../chat/conversation_link.tsx";
import { BlockedNotice } from "./blocked_notice.tsx";
import { formatCron, NextRun, TASK_TYPES } from "./schedule_text.tsx";
import { isCancellable, isRetriable } from "./task_table.tsx";
import { TaskFamily, TaskRuns } from "./task_runs.tsx";

const TITLE_MAX_CHARACTERS = 60;

export function Page({ params: { id = "" } }: PageProps) {
  const read = useGet("/api/tasks/{id}", { path: { id } }, (event) => event.task_id === id);
  return (
    <DetailPage
      read={read}
      above={{ href: "/console/tasks", name: "Tasks" }}
      title={({ instruction }) => takeFirstLine(instruction, TITLE_MAX_CHARACTERS)}
      actions={(task) => hasScope("write:tasks") && <Actions task={task} />}
    >
      {(task) => (
        <>
          <TaskFacts task={task} />
          <BlockedNotice task={task} />
          {task.paused && <Notice tone="warn">Paused: it does not run until you resume the schedule.</Notice>}
          {task.reason !== "" && !task.paused && task.held_by === null && (
            <Notice tone="warn">{task.reason}</Notice>
          )}
          <Section title="Instruction">
            <p class="prose">{task.instruction}</p>
          </Section>
          <TaskFamily task={task} />
          <TaskRuns task={task} />
        </>
      )}
    </DetailPage>
  );
}

function TaskFacts({ task }: { task: Schemas["Task"] }) {
  const { id, status, paused, type, worker_id, cron, time_zone, next_run_at, verify } = task;
  return (
    <Facts
      values={{
        "Status": <Status value={paused ? "paused" : status} />,
        "Worker": (
          <Link href={`/console/workers/${worker_id}`}>{findWorkerName(worker_id) || "deleted worker"}</Link>
        ),
        "Type": TASK_TYPES[type],
        "Schedule": cron !== "" && (
          <>
            {formatCron(cron)} {time_zone} <Link href={`/console/schedules/${id}`}>Open schedule</Link>
          </>
        ),
        "Next run": next_run_at !== null && !paused && <NextRun at={next_run_at} />,
        "Check command": verify !== null && <code>{verify.command.join(" ")}</code>,
        "Created": (
          <>
            <Ago at={task.created_at} /> by {formatActor(task.created_by)}
          </>
        ),
        "Conversation": <ConversationLink sessionKey={task.session_key} />,
        "ID": <ShortId value={id} subject="task id" />,
      }}
      wide={["Check command"]}
    />
  );
}

function Actions({ task }: { task: Schemas["Task"] }) {
  const { id, status, type } = task;
  const params = { path: { id } };
  return (
    <>
      {status === "scheduled" && (
        <Button
          icon={Play}
          press={() => load(api.POST("/api/tasks/{id}/run", { params, body: {} }))}
          done="Run started"
        >
          Run now
        </Button>
      )}
      {isRetriable(task) && (
        <Button
          icon={RotateCcw}
          confirm={{
            title: "Run this task again?",
            text: "Its attempts count on. Tasks that its failure cancelled wait for it again.",
            action: "Run again",
          }}
          press={() => load(api.POST("/api/tasks/{id}/retry", { params, body: {} }))}
          done="Task returned to the queue"
        >
          Run again
        </Button>
      )}
      {isCancellable(task) && (
        <Button
          icon={Square}
          confirm={{
            title: "Cancel this task?",
            text: type === "scheduled"
              ? "It will not run again. A current run finishes, and its results are kept."
              : "It will not run. Results so far are kept.",
            action: "Cancel task",
          }}
          press={() => load(api.POST("/api/tasks/{id}/cancel", { params, body: {} }))}
        >
          Cancel
        </Button>
      )}
    </>
  );
}
