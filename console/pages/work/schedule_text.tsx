import { TASK_TYPE_RULES } from "../../../src/domain/call/vocabulary.ts";
import { api, load, type Schemas } from "../../live/api.ts";
import { Button } from "../../parts/button.tsx";
import { formatPlannedTime } from "../../parts/format.ts";
import { Notice } from "../../parts/notice.tsx";
import { Ago } from "../../parts/time.tsx";

type Task = Schemas["Task"];

const WEEKDAYS = ["Sundays", "Mondays", "Tuesdays", "Wednesdays", "Thursdays", "Fridays", "Saturdays"];

export const TASK_TYPES: Record<Task["type"], string> = {
  immediate: "Immediate",
  countdown: "One-time",
  scheduled: "Recurring",
};

/** The types of schedules with their names, the recurring first. */
export const TIMED_TYPES = (Object.keys(TASK_TYPES) as Task["type"][])
  .filter((type) => TASK_TYPE_RULES[type].isTimed)
  .sort((one, other) => Number(isRecurring(other)) - Number(isRecurring(one)))
  .map((type) => [type, TASK_TYPES[type]] as const);

export function isRecurring(type: Task["type"]): boolean {
  return TASK_TYPE_RULES[type].isRecurring;
}

/** The policies for a schedule that is due during its own run. */
export const OVERLAPS: Record<Task["overlap"], string> = {
  skip: "Skip the new run",
  queue: "Queue one run",
  replace: "Stop the current run",
};

export function NextRun({ at }: { at: number }) {
  return (
    <>
      {formatPlannedTime(at)}, <Ago at={at} />
    </>
  );
}

/** Returns when a schedule runs, as text where possible, else as its cron expression. */
export function formatRecurrence({ type, cron, time_zone, scheduled_at }: Task): string {
  if (!isRecurring(type)) {
    return scheduled_at === null ? "once" : `once, ${formatPlannedTime(scheduled_at)}`;
  }
  return [formatCron(cron), time_zone].filter(Boolean).join(" ");
}

/** Returns a cron expression as text, or unchanged if it has no short one. */
export function formatCron(cron: string): string {
  const [minute = "", hour = "", day = "", month = "", weekday = ""] = cron.trim().split(/\s+/);
  const isNumber = (field: string) => /^\d+$/.test(field);
  if (month !== "*" || day !== "*" || !isNumber(minute)) return cron;
  if (hour === "*" && weekday === "*") return `every hour at ${minute.padStart(2, "0")}`;
  if (!isNumber(hour)) return cron;
  const clock = `${hour.padStart(2, "0")}:${minute.padStart(2, "0")}`;
  if (weekday === "*") return `every day at ${clock}`;
  if (weekday === "1-5") return `weekdays at ${clock}`;
  const name = isNumber(weekday) ? WEEKDAYS[Number(weekday) % 7] : undefined;
  return name === undefined ? cron : `${name} at ${clock}`;
}

export function formatLastRun({ last_status, failures_in_row, paused }: Task): string {
  const failed = failures_in_row > 1 ? `${failures_in_row} failures in a row` : "last run failed";
  const last = last_status === "failed" ? failed : last_status === "completed" ? "last run completed" : "";
  return [paused ? "paused" : "", last].filter(Boolean).join(" · ");
}

/** Says that a restore paused all schedules, and resumes them. */
export function SchedulesPaused({ paused, reload }: { paused: boolean; reload: () => void }) {
  if (!paused) return null;
  return (
    <Notice tone="warn">
      A restore paused all schedules.{" "}
      <Button
        class="small"
        scope="write:system"
        press={() => load(api.POST("/api/system/resume"))}
        done="Schedules resumed"
        after={reload}
      >
        Resume all schedules
      </Button>
    </Notice>
  );
}
