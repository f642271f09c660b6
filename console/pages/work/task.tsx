import { Play, Square } from "lucide-preact";
import { Link } from "wouter-preact";
import { api, ask, type Task } from "../../live/api.ts";
import { useResource } from "../../live/resource.ts";
import { may } from "../../live/session.ts";
import { workerName } from "../../live/workers.ts";
import type { PageProps } from "../../pages.tsx";
import { Act } from "../../parts/button.tsx";
import { confirmed } from "../../parts/dialog.tsx";
import { Fact, Facts } from "../../parts/facts.tsx";
import { firstLine, plannedText, whoText } from "../../parts/format.ts";
import { Absent, Heading } from "../../parts/page.tsx";
import { ShortId } from "../../parts/short_id.tsx";
import { Status } from "../../parts/status.tsx";
import { Ago } from "../../parts/time.tsx";
import { attempt } from "../../parts/toast.tsx";
import { ConversationLink } from "../chat/conversation_link.tsx";
import { cronWords } from "./schedule_text.ts";
import { HeldNotice } from "./blocked_notice.tsx";
import { TaskRuns } from "./task_runs.tsx";

const TITLE_MAX_CHARACTERS = 60;

const ABOVE = { href: "/console/tasks", name: "Tasks" };

/** One task: what it says, when it runs, and its runs. */
export function TaskPage({ params: { id = "" } }: PageProps) {
  const task = useResource(
    id,
    (signal) => ask(api.GET("/api/tasks/{id}", { params: { path: { id } }, signal })),
    (event) => event.task_id === id,
  );
  if (task.data === undefined) return <Absent refusal={task.refusal} above={ABOVE} />;
  const { status, type, instruction, worker_id, reason } = task.data;
  return (
    <>
      <Heading
        title={firstLine(instruction, TITLE_MAX_CHARACTERS)}
        above={ABOVE}
      >
        <TaskActions task={task.data} />
      </Heading>
      <div class="scrolled">
        <Facts>
          <Fact name="Status">
            <Status of={status} />
          </Fact>
          <Fact name="Worker">
            <Link href={`/console/workers/${worker_id}`}>{workerName(worker_id) || "a deleted worker"}</Link>
          </Fact>
          <Fact name="Kind">
            {{ immediate: "at once", countdown: "at a time", scheduled: "repeating" }[type]}
          </Fact>
          <Fact name="Schedule">
            {task.data.cron !== "" && (
              <>
                {cronWords(task.data.cron)} {task.data.time_zone}{" "}
                <Link href={`/console/schedules/${id}`}>all about it</Link>
              </>
            )}
          </Fact>
          <Fact name="Next run">
            {task.data.next_run_at !== null && (
              <>
                {plannedText(task.data.next_run_at)}, <Ago at={task.data.next_run_at} />
              </>
            )}
          </Fact>
          <Fact name="Check, after each run" wide>
            {task.data.verify !== null && <code>{task.data.verify.command.join(" ")}</code>}
          </Fact>
          <Fact name="Made">
            <Ago at={task.data.created_at} /> by {whoText(task.data.created_by)}
          </Fact>
          <Fact name="Conversation">
            <ConversationLink sessionKey={task.data.session_key} />
          </Fact>
          <Fact name="Id">
            <ShortId value={id} what="task id" />
          </Fact>
        </Facts>
        <HeldNotice task={task.data} />
        {reason !== "" && task.data.held_by === null && <p class="notice warn">{reason}</p>}
        <section>
          <h2>Instruction</h2>
          <p class="prose">{instruction}</p>
        </section>
        <TaskRuns task={task.data} />
      </div>
    </>
  );
}

function TaskActions({ task }: { task: Task }) {
  const { id, status, type } = task;
  if (!may("write:tasks")) return null;
  async function cancel(): Promise<void> {
    const yes = await confirmed({
      title: "Cancel this task?",
      text: type === "scheduled"
        ? "It will not run again. A run that is going on finishes; what it has done stays."
        : "It will not run. What it has done so far stays.",
      action: "Cancel the task",
    });
    if (yes) {
      await attempt(() => ask(api.POST("/api/tasks/{id}/cancel", { params: { path: { id } }, body: {} })));
    }
  }
  const run = () =>
    attempt(
      () => ask(api.POST("/api/tasks/{id}/run", { params: { path: { id } }, body: {} })),
      "It runs now",
    );
  return (
    <>
      {status === "scheduled" && (
        <Act run={() => run()}>
          <Play size={16} aria-hidden="true" /> Run now
        </Act>
      )}
      {(["pending", "scheduled"].includes(status) || status === "running" && type === "scheduled") && (
        <Act
          run={() => cancel()}
        >
          <Square size={16} aria-hidden="true" /> Cancel
        </Act>
      )}
    </>
  );
}
