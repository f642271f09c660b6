import { z } from "zod";
import { budgetCreateSchema } from "./budget.ts";
import { departmentCreateSchema } from "./department.ts";
import { CONTENT_MAX_BYTES, KEY_MAX_BYTES, line, NAME_MAX_BYTES, nameText, text } from "../call/field.ts";
import { MEMORY_ENTRIES_MAX } from "./memory.ts";
import { nameKey } from "../call/name.ts";
import { taskCreateSchema } from "../work/task.ts";
import { FLEET_ACTIONS, FLEET_KINDS, type FleetKind } from "../call/vocabulary.ts";
import { webhookCreateSchema } from "../system/webhook.ts";
import { workerCreateSchema } from "./worker.ts";

/** The largest fleet, as JSON (contract 16). */
export const FLEET_MAX_BYTES = 16 * 1024 * 1024;

/** Departments, workers, schedules, budgets and webhooks that a fleet has at most, of each. */
const FLEET_OBJECTS_MAX = 10_000;

/** The name of a fleet whose file names none. */
const FLEET_DEFAULT = "default";

// Names take the place of ids, and nothing is left to when it was made.
const departmentSchema = departmentCreateSchema.omit({ parent_id: true }).extend({
  parent: line(NAME_MAX_BYTES).or(z.literal("")).default("").meta({
    description: "name of the department above",
  }),
});

// Who does it is named, and it belongs to no message.
const scheduleSchema = taskCreateSchema.pick({
  instruction: true,
  time_zone: true,
  paused: true,
  gate: true,
  verify: true,
  overlap: true,
  pause_after_failures: true,
  deliver_to: true,
  until: true,
  max_runs: true,
}).required({ instruction: true }).extend({
  name: nameText(),
  worker: line(NAME_MAX_BYTES).meta({ description: "name of the worker" }),
  cron: text(1_000),
});

// Its secret is none of a file that lies beside code: one is made, and can be set afterwards.
const webhookSchema = webhookCreateSchema.omit({ secret: true });

const named = <S extends z.ZodObject<{ name: z.ZodType<string> }>>(schema: S) =>
  z.array(schema).max(FLEET_OBJECTS_MAX).default([]).superRefine((all, context) => {
    const seen = new Map<string, number>();
    for (const [index, { name }] of all.entries()) {
      const key = nameKey(name as string);
      const first = seen.get(key);
      if (first === undefined) seen.set(key, index);
      else {context.addIssue({
          code: "custom",
          path: [index, "name"],
          message: `is also that of entry ${first}`,
        });}
    }
  });

/** A fleet as a file holds it: what there is to be, by name; what a field leaves out is its default (contract 16). */
export const fleetSchema = z.strictObject({
  fleet: nameText().default(FLEET_DEFAULT).meta({ description: "who manages what stands here" }),
  departments: named(departmentSchema),
  workers: named(workerCreateSchema),
  schedules: named(scheduleSchema),
  budgets: named(budgetCreateSchema),
  webhooks: named(webhookSchema),
  memory: z.record(line(KEY_MAX_BYTES), text(CONTENT_MAX_BYTES)).default({}).refine(
    (entries) => Object.keys(entries).length <= MEMORY_ENTRIES_MAX,
    { error: `must be at most ${MEMORY_ENTRIES_MAX} entries` },
  ).meta({ description: "of every conversation, by key" }),
}).meta({ id: "Fleet", examples: [{ departments: [{ name: "News" }], workers: [{ name: "Ada" }] }] });

export type Fleet = z.output<typeof fleetSchema>;

/** What GET /api/fleet answers: a fleet without what is its default. */
export const exportSchema = z.strictObject({
  departments: z.array(z.record(z.string(), z.unknown())),
  workers: z.array(z.record(z.string(), z.unknown())),
  schedules: z.array(z.record(z.string(), z.unknown())),
  budgets: z.array(z.record(z.string(), z.unknown())),
  webhooks: z.array(z.record(z.string(), z.unknown())),
  memory: z.record(z.string(), z.string()),
}).partial().meta({ id: "FleetExport" });

export type FleetExport = z.output<typeof exportSchema>;

const options = {
  fleet: fleetSchema,
  prune: z.boolean().default(false).meta({
    description: "delete what this fleet manages and the file does not name",
  }),
  adopt: z.boolean().default(false).meta({ description: "take over what another fleet or nobody manages" }),
};

/** Body of POST /api/fleet/plan. */
export const fleetPlanInput = z.strictObject(options).meta({
  id: "FleetPlanInput",
  examples: [{ fleet: {} }],
});

/** Body of POST /api/fleet/apply. */
export const fleetApplyInput = z.strictObject({
  ...options,
  plan: z.string().optional().meta({
    description: "the hash of the plan that was looked at; another one is a conflict",
  }),
}).meta({ id: "FleetApply", examples: [{ fleet: { workers: [{ name: "Ada" }] } }] });

export type FleetPlanInput = z.output<typeof fleetPlanInput>;
export type FleetApply = z.output<typeof fleetApplyInput>;

const changeSchema = z.strictObject({
  action: z.enum(FLEET_ACTIONS).meta({
    description: "adopt: its contents stay, and it is managed from here on",
  }),
  kind: z.enum(FLEET_KINDS),
  name: z.string(),
  fields: z.array(z.strictObject({ name: z.string(), before: z.unknown(), after: z.unknown() })),
});

/** What an apply changes, and what stands in its way. */
export const fleetPlanSchema = z.strictObject({
  hash: z.string(),
  changes: z.array(changeSchema),
  conflicts: z.array(z.strictObject({ kind: z.enum(FLEET_KINDS), name: z.string(), detail: z.string() })),
}).meta({ id: "FleetPlan" });

export type FleetPlan = z.output<typeof fleetPlanSchema>;
export type FleetChange = z.output<typeof changeSchema>;

/** One thing of a fleet in the form in which it is compared. */
export interface FleetObject {
  kind: FleetKind;
  name: string;
  fields: Record<string, unknown>;
}

/** One that is there. */
export interface PresentObject extends FleetObject {
  id: string;
  /** The fleet that manages it; null for none. */
  managedBy: string | null;
}
