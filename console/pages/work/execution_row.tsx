import { Link } from "wouter-preact";
import type { Schemas } from "../../live/api.ts";
import { firstLine } from "../../parts/format.ts";
import { Status } from "../../parts/status.tsx";
import { Ago, Lasted } from "../../parts/time.tsx";
import { failureWord } from "./failure.ts";

type Shown = Schemas["Overview"]["recent_executions"][number];

/** An execution in a list: what was asked, of whom, how it stands, when. */
export function ExecutionRow({ execution }: { execution: Shown }) {
  const { id, status, failure, worker_name, instruction, started_at, completed_at, created_at } = execution;
  const failed = status === "failed" && failure !== "cancelled";
  return (
    <Link href={`/console/executions/${id}`} class="row">
      <Status of={failure === "cancelled" ? "cancelled" : status} bare />
      <span class="row-main">
        <span class="row-title">{firstLine(instruction)}</span>
        <span class="row-note">
          {[worker_name, failed ? failureWord(failure) : ""].filter(Boolean).join(" · ")}
        </span>
      </span>
      <span class="row-side">
        <Lasted from={started_at} to={status === "running" ? null : completed_at ?? started_at} />
        <Ago at={completed_at ?? started_at ?? created_at} />
      </span>
    </Link>
  );
}
