import { z } from "zod";
import { createZoneClock } from "../work/cron.ts";
import { executionSchema, usageSchema } from "../work/execution.ts";
import { id, parseIntegerOr, text, time } from "../call/field.ts";
import { chosenPassword, PASSWORD_MAX_BYTES } from "../account/password.ts";
import {
  CHECK_STATUSES,
  EXECUTION_STATUSES,
  SERVICE_STATES,
  TASK_STATUSES,
  WORKER_STATUSES,
} from "../call/vocabulary.ts";

const DAY_MS = 86_400_000;

function buildCounts<const T extends readonly string[]>(names: T) {
  return z.strictObject({
    total: z.int(),
    ...Object.fromEntries(names.map((name) => [name, z.int()])) as { [K in T[number]]: z.ZodInt },
  });
}

const usageTotal = z.strictObject({ executions: z.int(), failed: z.int(), ...usageSchema.shape });

/** Characters of an instruction in a recent execution. */
export const INSTRUCTION_SHOWN_MAX = 200;

/** Recent executions and today's busiest workers in an overview. */
export const OVERVIEW_EXECUTIONS_MAX = 10;
export const OVERVIEW_WORKERS_MAX = 20;

export const recentExecutionSchema = executionSchema.pick({
  id: true,
  worker_id: true,
  worker_name: true,
  task_id: true,
  session_key: true,
  engine: true,
  instruction: true,
  status: true,
  failure: true,
  attempt: true,
  created_at: true,
  started_at: true,
  completed_at: true,
});
export type RecentExecution = z.output<typeof recentExecutionSchema>;

export const overviewSchema = z.strictObject({
  version: z.string(),
  state: z.enum(SERVICE_STATES),
  started_at: time,
  workers: buildCounts(WORKER_STATUSES),
  tasks: buildCounts(TASK_STATUSES),
  executions: buildCounts(EXECUTION_STATUSES),
  usage_today: usageTotal.extend({
    since: time.meta({ description: "the start of the day in the service's time zone" }),
    workers: z.array(usageTotal.extend({ worker_id: id, worker_name: z.string() }))
      .meta({ description: `by worker, most executions first, at most ${OVERVIEW_WORKERS_MAX}` }),
  }),
  schedules_paused: z.boolean().meta({ description: "a restore paused all schedules" }),
  limited_engines: z.array(z.strictObject({ engine: z.string(), until: time }))
    .meta({ description: "engines that wait for a rate limit to end" }),
  recent_executions: z.array(recentExecutionSchema)
    .meta({ description: `newest first; instructions cut to ${INSTRUCTION_SHOWN_MAX} characters` }),
}).meta({ id: "Overview" });
export type Overview = z.output<typeof overviewSchema>;

export const beeRunQuery = {
  cursor: id.optional().meta({ description: "continue after this id; taken from the header Link" }),
  limit: parseIntegerOr(10, [1, 100]),
};

const checkSchema = z.strictObject({
  name: z.string(),
  status: z.enum(CHECK_STATUSES),
  detail: z.string(),
  hint: z.string().meta({ description: "next step; empty when ok" }),
}).meta({ id: "Check" });

export type Check = z.output<typeof checkSchema>;

export const doctorSchema = z.strictObject({
  status: z.enum(CHECK_STATUSES),
  checks: z.array(checkSchema),
}).meta({ id: "Doctor" });
export type Doctor = z.output<typeof doctorSchema>;

export function findWorstStatus(checks: readonly Check[]): Check["status"] {
  return checks.some((check) => check.status === "fail")
    ? "fail"
    : checks.some((check) => check.status === "warn")
    ? "warn"
    : "ok";
}

export const passwordChangeSchema = z.strictObject({
  current_password: text(PASSWORD_MAX_BYTES).optional()
    .meta({ description: "required with a token from a login" }),
  new_password: chosenPassword,
}).meta({
  id: "PasswordChange",
  examples: [{ current_password: "the old one", new_password: "a longer secret" }],
});
export type PasswordChange = z.output<typeof passwordChangeSchema>;

export const keyRotatedSchema = z.strictObject({ rotated_at: time }).meta({ id: "KeyRotated" });
export type KeyRotation = z.output<typeof keyRotatedSchema>;

export const passwordChangedSchema = z.strictObject({ username: z.string(), updated_at: time })
  .meta({ id: "PasswordChanged" });
export type PasswordChangeResult = z.output<typeof passwordChangedSchema>;

export const backupRequestSchema = z.strictObject({
  include_key: z.boolean().default(false)
    .meta({ description: "adds the signing key to the archive; requires the password" }),
  password: text(PASSWORD_MAX_BYTES).optional()
    .meta({ description: "the caller's password; required with include_key" }),
}).meta({ id: "BackupRequest" });
export type BackupRequest = z.output<typeof backupRequestSchema>;

/** Whether any task was paused. */
export const resumedSchema = z.strictObject({ resumed: z.boolean() }).meta({ id: "Resumed" });
export type ResumeResult = z.output<typeof resumedSchema>;

/** Returns the start of the day of `now` in this time zone, in Unix ms. */
export function findStartOfDay(now: number, timeZone: string): number {
  const offsetAt = createZoneClock(timeZone);
  const midnight = Math.floor((now + offsetAt(now)) / DAY_MS) * DAY_MS;
  // Twice, because daylight saving time may have changed between midnight and now.
  const first = midnight - offsetAt(now);
  return midnight - offsetAt(first);
}
