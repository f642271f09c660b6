import type { Task } from "../../live/api.ts";
import { plannedText } from "../../parts/format.ts";

const DAYS = ["Sundays", "Mondays", "Tuesdays", "Wednesdays", "Thursdays", "Fridays", "Saturdays"];

/** When a schedule runs, in words where there are plain ones, else as its cron expression. */
export function whenWords({ type, cron, time_zone, scheduled_at }: Task): string {
  if (type === "countdown") return scheduled_at === null ? "once" : `once, ${plannedText(scheduled_at)}`;
  return [cronWords(cron), time_zone].filter(Boolean).join(" ");
}

/** A cron expression in words, or itself. */
export function cronWords(cron: string): string {
  const [minute = "", hour = "", day = "", month = "", weekday = ""] = cron.trim().split(/\s+/);
  const plain = (field: string) => /^\d+$/.test(field);
  if (month !== "*" || day !== "*" || !plain(minute)) return cron;
  if (hour === "*" && weekday === "*") return `every hour at ${minute.padStart(2, "0")}`;
  if (!plain(hour)) return cron;
  const clock = `${hour.padStart(2, "0")}:${minute.padStart(2, "0")}`;
  if (weekday === "*") return `every day at ${clock}`;
  if (weekday === "1-5") return `weekdays at ${clock}`;
  const name = plain(weekday) ? DAYS[Number(weekday) % 7] : undefined;
  return name === undefined ? cron : `${name} at ${clock}`;
}

/** How its latest runs ended. */
export function lastWords({ last_status, failures_in_row, paused }: Task): string {
  const state = paused ? "paused" : "";
  const failed = failures_in_row > 1 ? `${failures_in_row} failures in a row` : "last run failed";
  const last = last_status === "failed" ? failed : last_status === "completed" ? "last run completed" : "";
  return [state, last].filter(Boolean).join(" · ");
}
