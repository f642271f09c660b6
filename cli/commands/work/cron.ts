import type { Context } from "../command.ts";
import { EXIT, Exit } from "../../terminal/exit.ts";

const NICKNAMES: Record<string, string> = {
  "@hourly": "0 * * * *",
  "@daily": "0 0 * * *",
  "@midnight": "0 0 * * *",
  "@weekly": "0 0 * * 0",
  "@monthly": "0 0 1 * *",
  "@yearly": "0 0 1 1 *",
  "@annually": "0 0 1 1 *",
};

/** Returns the five fields of a nickname such as `@daily`, which the server does not accept, and other texts unchanged. */
export function expandCron<C extends string | undefined>(cron: C): C {
  return (cron === undefined ? cron : NICKNAMES[cron.trim().toLowerCase()] ?? cron) as C;
}

interface PlannedTask {
  id: string;
  status: string;
  reason: string;
}

/**
 * Throws Exit 8 for a task that the server stored as cancelled because of its cron expression (interface 7.2). A terminal gets only
 * the reason, a pipe also the task.
 */
export function refuseCancelled(
  { out }: Pick<Context, "out">,
  json: string,
  task: PlannedTask & Record<string, unknown>,
  what: "task" | "schedule",
): void {
  if (task.status !== "cancelled") return;
  if (out.format !== "table") out.object(json, task);
  throw new Exit(EXIT.awaitedFailed, `the ${what} was cancelled: ${task.reason}`);
}
