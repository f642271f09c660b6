import { z } from "zod";
import { ServiceError } from "../call/error.ts";
import { content, CONTENT_MAX_BYTES, line, NAME_MAX_BYTES, text, time } from "../call/field.ts";
import type { Candidate } from "./routing.ts";
import type { Task, TaskPlan } from "../work/task.ts";
import { readBatchReference } from "../work/task_parent.ts";
import { planTask } from "../work/task_plan.ts";
import { normalizeName } from "../call/name_key.ts";
import { AFTER_CONDITIONS, TASK_TYPES, type TaskType } from "../call/vocabulary.ts";

export const PLAN_TASKS_MAX = 20;

const beePlanSchema = z.strictObject({
  reply: text(CONTENT_MAX_BYTES).nullish(),
  tasks: z.array(z.strictObject({
    worker: line(NAME_MAX_BYTES + 1),
    instruction: content(CONTENT_MAX_BYTES),
    type: z.enum(TASK_TYPES).default("immediate"),
    scheduled_at: time.nullish(),
    cron: text(200).nullish(),
    time_zone: text(100).nullish(),
    after: z.array(line(10)).max(PLAN_TASKS_MAX).nullish(),
    after_when: z.enum(AFTER_CONDITIONS).nullish(),
  })).max(PLAN_TASKS_MAX, { error: `must be at most ${PLAN_TASKS_MAX} tasks` }).default([]),
});

const nullable = (type: string) => ({ type: [type, "null"] });

/** The plan as a JSON schema, for engines that accept one for their answer. They expect every field to be required. */
export const PLAN_JSON_SCHEMA = {
  type: "object",
  additionalProperties: false,
  required: ["reply", "tasks"],
  properties: {
    reply: nullable("string"),
    tasks: {
      type: "array",
      items: {
        type: "object",
        additionalProperties: false,
        required: [
          "worker",
          "instruction",
          "type",
          "scheduled_at",
          "cron",
          "time_zone",
          "after",
          "after_when",
        ],
        properties: {
          worker: { type: "string" },
          instruction: { type: "string" },
          type: { type: "string", enum: [...TASK_TYPES] },
          scheduled_at: nullable("integer"),
          cron: nullable("string"),
          time_zone: nullable("string"),
          after: { type: "array", items: { type: "string" } },
          after_when: { type: ["string", "null"], enum: [...AFTER_CONDITIONS, null] },
        },
      },
    },
  },
};

/** A valid task of a plan with its worker and its time. */
export interface PlannedTask {
  workerId: string;
  workerName: string;
  instruction: string;
  type: TaskType;
  plan: TaskPlan;
  /** Positions of earlier tasks of the plan that it waits for, from 0. */
  after?: number[];
  after_when?: Task["after_when"];
}

export interface BeePlan {
  reply: string;
  tasks: PlannedTask[];
}

interface PlanContext {
  candidates: readonly Candidate[];
  now: number;
  timeZone: string;
}

/**
 * Parses the bee's answer: one JSON object, alone, in a code block or inside other text. Returns the plan, or the problem as
 * text for the bee. One bad task makes the whole plan unusable (contract 4.4).
 */
export function readPlan(answer: string, context: PlanContext): BeePlan | { problem: string } {
  const json = findJson(answer);
  if (json === null) return { problem: "the answer is not one JSON object" };
  const parsed = beePlanSchema.safeParse(json);
  if (!parsed.success) {
    const problems = parsed.error.issues.slice(0, 5).map(({ path, message }) =>
      `${path.join(".") || "plan"}: ${message}`
    );
    return { problem: problems.join("; ") };
  }
  const { tasks } = parsed.data;
  const reply = parsed.data.reply ?? "";
  if (reply.trim() === "" && tasks.length === 0) {
    return { problem: "the plan has neither a reply nor a task" };
  }
  const planned: PlannedTask[] = [];
  for (const [index, task] of tasks.entries()) {
    const found = checkTask(task, index, context);
    if ("problem" in found) return { problem: `tasks.${index}.${found.problem}` };
    planned.push(found);
  }
  return { reply: reply.trim(), tasks: planned };
}

function findJson(answer: string): unknown {
  const fenced = /```(?:json)?\s*\n([\s\S]*?)\n\s*```/.exec(answer)?.[1];
  const braced = answer.slice(answer.indexOf("{"), answer.lastIndexOf("}") + 1);
  for (const text of [answer, fenced, braced]) {
    try {
      const value = JSON.parse(text ?? "");
      if (typeof value === "object" && value !== null && !Array.isArray(value)) return value;
    } catch {
      // Try the next form.
    }
  }
  return null;
}

type RawTask = z.output<typeof beePlanSchema>["tasks"][number];

function checkTask(
  task: RawTask,
  index: number,
  { candidates, now, timeZone }: PlanContext,
): PlannedTask | { problem: string } {
  const named = findByName(task.worker, candidates);
  const [worker] = named;
  if (worker === undefined) {
    const known = candidates.slice(0, 50).map((one) => one.name).join(", ");
    return {
      problem: `worker: no worker has the name ${JSON.stringify(task.worker)}; the workers are: ${known}`,
    };
  }
  if (named.length > 1) {
    return { problem: `worker: ${named.length} workers are called ${worker.name}; give the id` };
  }
  const { type, instruction } = task;
  const times = {
    type,
    scheduled_at: task.scheduled_at ?? undefined,
    cron: task.cron || undefined,
    time_zone: task.time_zone || undefined,
    after: task.after ?? [],
    after_when: task.after_when ?? "success",
  };
  const after = [...new Set(times.after)].map((name) => readBatchReference(name) ?? Infinity);
  if (after.some((position) => position >= index)) {
    return {
      problem: `after: must name earlier tasks of this plan; the first is #1, this one is #${index + 1}`,
    };
  }
  try {
    const plan = planTask(times, now, timeZone);
    if (plan.status === "cancelled") return { problem: `cron: ${plan.reason}` };
    const { after_when } = times;
    return { workerId: worker.id, workerName: worker.name, instruction, type, plan, after, after_when };
  } catch (error) {
    if (error instanceof ServiceError) return { problem: error.message };
    throw error;
  }
}

function findByName(wanted: string, candidates: readonly Candidate[]): Candidate[] {
  const byId = candidates.filter((one) => one.id === wanted.toLowerCase());
  const key = normalizeName(wanted.replace(/^@/, ""));
  return byId.length > 0 ? byId : candidates.filter((one) => normalizeName(one.name) === key);
}

/** Formats why the messages were routed this way, for `message trace`. */
export function formatPlanReason({ reply, tasks }: BeePlan): string {
  if (tasks.length === 0) return "the coordinator replies itself";
  const names = [...new Set(tasks.map((task) => task.workerName))].join(", ");
  const count = tasks.length === 1 ? "1 task" : `${tasks.length} tasks`;
  return `the coordinator's plan: ${count} for ${names}${reply === "" ? "" : ", and a reply"}`;
}
