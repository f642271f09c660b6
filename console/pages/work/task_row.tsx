import { Link } from "wouter-preact";
import type { Task } from "../../live/api.ts";
import { workerName } from "../../live/workers.ts";
import { firstLine } from "../../parts/format.ts";
import { cronWords } from "./schedule_text.ts";
import { Status } from "../../parts/status.tsx";
import { Ago } from "../../parts/time.tsx";

/** A task in a list: what is to be done, by whom, how it stands, when. */
export function TaskRow({ task }: { task: Task }) {
  const { id, status, instruction, worker_id, reason, cron, next_run_at, updated_at } = task;
  return (
    <Link href={`/console/tasks/${id}`} class="row">
      <Status of={status} bare />
      <span class="row-main">
        <span class="row-title">{firstLine(instruction)}</span>
        <span class="row-note">
          {[workerName(worker_id), cron === "" ? "" : cronWords(cron), firstLine(reason)].filter(Boolean)
            .join(" · ")}
        </span>
      </span>
      <span class="row-side">
        {next_run_at !== null && status === "scheduled" && <span>next</span>}
        <Ago at={status === "scheduled" ? next_run_at : updated_at} />
      </span>
    </Link>
  );
}
