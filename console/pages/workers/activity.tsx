import { Link } from "wouter-preact";
import type { Schemas } from "../../live/api.ts";
import { pluralize } from "../../parts/format.ts";
import { Status } from "../../parts/status.tsx";
import { Ago } from "../../parts/time.tsx";

export type Activity = Schemas["WorkerActivity"];

const FULL = 100;

/** A bar per day: as high as the share of the busiest day, red for the failed runs. */
export function DayStrip({ days, activity }: { days: readonly string[]; activity: Activity }) {
  const byDay = new Map(activity.days.map((day) => [day.day, day]));
  const most = Math.max(1, ...activity.days.map(({ executions }) => executions));
  const { executions, failed } = sumRuns(activity);
  return (
    <span
      class="strip"
      role="img"
      aria-label={`${pluralize(executions, "run")} in ${days.length} days, ${failed} failed`}
      title={days.map((day) => formatDay(day, byDay.get(day))).join("\n")}
    >
      {days.map((day) => {
        const one = byDay.get(day);
        if (one === undefined) return <span key={day} class="none" />;
        return (
          <span key={day} style={{ height: `${Math.round((one.executions / most) * FULL)}%` }}>
            <span style={{ height: `${Math.round((one.failed / one.executions) * FULL)}%` }} />
          </span>
        );
      })}
    </span>
  );
}

function formatDay(day: string, one: Activity["days"][number] | undefined): string {
  return one === undefined
    ? `${day}: no runs`
    : `${day}: ${pluralize(one.executions, "run")}, ${one.failed} failed`;
}

function sumRuns({ days }: Activity): { executions: number; failed: number } {
  return {
    executions: days.reduce((sum, { executions }) => sum + executions, 0),
    failed: days.reduce((sum, { failed }) => sum + failed, 0),
  };
}

/** The share of runs that succeeded: `93 %`. A dash without runs. */
export function SuccessRate({ activity }: { activity: Activity }) {
  const { executions, failed } = sumRuns(activity);
  if (executions === 0) return <span class="quiet">–</span>;
  // A rounded 100 % would hide the only failure of many runs.
  const percent = Math.floor(((executions - failed) / executions) * FULL);
  return <span title={`${executions - failed} of ${pluralize(executions, "run")}`}>{percent} %</span>;
}

export function LastRun({ run }: { run: Activity["last_run"] }) {
  if (run === null) return <span class="quiet">no runs yet</span>;
  return (
    <Link href={`/console/executions/${run.id}`} class="last-run">
      <Status value={run.status} bare /> <Ago at={run.created_at} />
    </Link>
  );
}

export function WaitingTasks({ activity: { worker_id, pending, blocked } }: { activity: Activity }) {
  if (pending === 0) return <span class="quiet">–</span>;
  return (
    <Link href={`/console/tasks?worker=${worker_id}`}>
      {pending}
      {blocked > 0 && <span class="wrong">, {blocked === pending ? "all" : blocked} on hold</span>}
    </Link>
  );
}
