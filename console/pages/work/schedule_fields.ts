import type { Schemas } from "../../live/api.ts";
import { COMMAND_HINT, type Field, parseCommand } from "../../parts/field.tsx";
import { isRecurring, OVERLAPS } from "./schedule_text.tsx";

type Task = Schemas["Task"];

/** The values of the form of a schedule, by their names in the API. */
export interface ScheduleValues extends Record<string, string> {
  worker_id: string;
  instruction: string;
  name: string;
  type: Task["type"];
  cron: string;
  time_zone: string;
  scheduled_at: string;
  overlap: string;
  pause_after_failures: string;
  max_runs: string;
  until: string;
  gate: string;
  verify: string;
  deliver_to: string;
}

export const RECURRING_FIELDS: readonly Field<keyof ScheduleValues & string>[] = [
  { name: "overlap", label: "Overlap policy", options: Object.entries(OVERLAPS) },
  {
    name: "pause_after_failures",
    label: "Failures before pausing",
    hint: "After this many failed runs in a row. 0: never",
  },
  { name: "max_runs", label: "Maximum runs", hint: "Leave empty for no limit" },
  { name: "until", label: "End", type: "datetime-local" },
];

export const COMMAND_FIELDS: readonly Field<keyof ScheduleValues & string>[] = [
  {
    name: "gate",
    label: "Gate command",
    rows: 3,
    hint:
      `Decides before each run whether it starts. ${COMMAND_HINT}. Exit code 0: the run starts and gets the ` +
      "output. 1: the run is skipped. Other codes: the gate failed",
  },
  {
    name: "verify",
    label: "Check command",
    rows: 3,
    hint: `Checks the result of each run. ${COMMAND_HINT}. Leave empty for no check`,
  },
];

export function createValues(worker_id: string): ScheduleValues {
  return {
    worker_id,
    instruction: "",
    name: "",
    type: "scheduled",
    cron: "0 9 * * 1-5",
    time_zone: "",
    scheduled_at: "",
    overlap: "skip",
    pause_after_failures: "5",
    max_runs: "",
    until: "",
    gate: "",
    verify: "",
    deliver_to: "",
  };
}

export function readValues(task: Task): ScheduleValues {
  const { worker_id, instruction, name, type, cron, time_zone, overlap, max_runs, deliver_to } = task;
  return {
    ...{ worker_id, instruction, name, type, cron, time_zone, overlap, deliver_to },
    scheduled_at: formatInput(task.scheduled_at),
    pause_after_failures: String(task.pause_after_failures),
    max_runs: max_runs === null ? "" : String(max_runs),
    until: formatInput(task.until),
    gate: task.gate?.command.join("\n") ?? "",
    verify: task.verify?.command.join("\n") ?? "",
  };
}

/** Builds the request that creates a schedule or changes `before`. Leaves out an unchanged command, which keeps its options. */
export function buildRequest(values: ScheduleValues, before: Task | null): Schemas["TaskUpdate"] {
  const { worker_id, instruction, cron, time_zone, type } = values;
  const old = before === null ? createValues("") : readValues(before);
  return {
    ...{ worker_id, instruction },
    name: values.name.trim(),
    deliver_to: values.deliver_to.trim(),
    ...(values.gate === old.gate ? {} : { gate: parseCommand(values.gate) }),
    ...(values.verify === old.verify ? {} : { verify: parseCommand(values.verify) }),
    ...(isRecurring(type)
      ? {
        cron: cron.trim(),
        ...(time_zone === old.time_zone ? {} : { time_zone }),
        overlap: values.overlap as Task["overlap"],
        pause_after_failures: Number(values.pause_after_failures.trim() || "0"),
        until: parseInput(values.until),
        max_runs: values.max_runs.trim() === "" ? null : Number(values.max_runs),
      }
      : { scheduled_at: parseInput(values.scheduled_at) ?? 0 }),
  };
}

// Fields of this type hold the browser's local time.
function formatInput(at: number | null): string {
  if (at === null) return "";
  const minute = 60_000;
  return new Date(at - new Date(at).getTimezoneOffset() * minute).toISOString().slice(0, 16);
}

function parseInput(text: string): number | null {
  return text === "" ? null : new Date(text).getTime();
}
