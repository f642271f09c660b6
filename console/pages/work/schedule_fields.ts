import type { Schemas, Task } from "../../live/api.ts";

/** What the editor holds, as text. */
export interface Values {
  worker: string;
  instruction: string;
  name: string;
  type: "scheduled" | "countdown";
  cron: string;
  zone: string;
  at: string;
  overlap: Task["overlap"];
  pauseAfter: string;
  maxRuns: string;
  until: string;
  gate: string;
  verify: string;
  deliverTo: string;
}

type Create = Schemas["TaskCreate"];
type Update = Schemas["TaskUpdate"];

/** An empty editor. */
export function blank(worker: string): Values {
  return {
    worker,
    instruction: "",
    name: "",
    type: "scheduled",
    cron: "0 9 * * 1-5",
    zone: "",
    at: "",
    overlap: "skip",
    pauseAfter: "5",
    maxRuns: "",
    until: "",
    gate: "",
    verify: "",
    deliverTo: "",
  };
}

/** The editor of a schedule that exists. */
export function valuesOf(task: Task): Values {
  return {
    worker: task.worker_id,
    instruction: task.instruction,
    name: task.name,
    type: task.type === "countdown" ? "countdown" : "scheduled",
    cron: task.cron,
    zone: task.time_zone,
    at: localText(task.scheduled_at),
    overlap: task.overlap,
    pauseAfter: String(task.pause_after_failures),
    maxRuns: task.max_runs === null ? "" : String(task.max_runs),
    until: localText(task.until),
    gate: task.gate?.command.join("\n") ?? "",
    verify: task.verify?.command.join("\n") ?? "",
    deliverTo: task.deliver_to,
  };
}

/** The request that makes it. */
export function createOf(values: Values, messageId: string): Create {
  const { gate, verify, ...rest } = shared(values);
  return {
    ...rest,
    ...(gate === null ? {} : { gate }),
    ...(verify === null ? {} : { verify }),
    message_id: messageId,
    type: values.type,
    ...(values.type === "countdown"
      ? { scheduled_at: instantOf(values.at) ?? 0 }
      : { cron: values.cron.trim(), ...(values.zone === "" ? {} : { time_zone: values.zone }) }),
  } as Create;
}

/** The request that changes it. A command that was not touched keeps its time-out and its attempts. */
export function updateOf(values: Values, before: Task): Update {
  const { gate, verify, ...rest } = shared(values);
  const old = valuesOf(before);
  return {
    ...rest,
    ...(values.gate === old.gate ? {} : { gate }),
    ...(values.verify === old.verify ? {} : { verify }),
    ...(values.type === "countdown"
      ? { scheduled_at: instantOf(values.at) }
      : { cron: values.cron.trim(), time_zone: values.zone }),
  } as Update;
}

function shared(values: Values) {
  return {
    worker_id: values.worker,
    instruction: values.instruction,
    name: values.name.trim(),
    gate: commandOf(values.gate),
    verify: commandOf(values.verify),
    deliver_to: values.deliverTo.trim(),
    ...(values.type === "countdown" ? {} : {
      overlap: values.overlap,
      pause_after_failures: Number(values.pauseAfter.trim() || "0"),
      until: instantOf(values.until),
      max_runs: values.maxRuns.trim() === "" ? null : Number(values.maxRuns),
    }),
  };
}

function commandOf(text: string): { command: string[] } | null {
  const command = text.split("\n").map((word) => word.trim()).filter(Boolean);
  return command.length === 0 ? null : { command };
}

/** A time on the reader's clock, as the field for one takes it. */
function localText(at: number | null): string {
  if (at === null) return "";
  const minute = 60_000;
  return new Date(at - new Date(at).getTimezoneOffset() * minute).toISOString().slice(0, 16);
}

function instantOf(text: string): number | null {
  return text === "" ? null : new Date(text).getTime();
}
