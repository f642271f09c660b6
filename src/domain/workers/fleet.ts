import { z } from "zod";
import { budgetCreateSchema } from "./budget.ts";
import { departmentCreateSchema } from "./department.ts";
import { CONTENT_MAX_BYTES, KEY_MAX_BYTES, line, NAME_MAX_BYTES, nameText, text } from "../call/field.ts";
import { MEMORY_ENTRIES_MAX } from "./memory.ts";
import { normalizeName } from "../call/name_key.ts";
import { taskCreateSchema } from "../work/task.ts";
import { FLEET_ACTIONS, FLEET_KINDS, type FleetKind } from "../call/vocabulary.ts";
import { webhookCreateSchema } from "../system/webhook.ts";
import { workerCreateSchema } from "./worker.ts";

export const FLEET_MAX_BYTES = 16 * 1024 * 1024;

/** Limit of the number of objects of each kind in a fleet. */
const FLEET_OBJECTS_MAX = 10_000;

const FLEET_DEFAULT = "default";

// A fleet file refers to departments by name instead of id.
const departmentSchema = departmentCreateSchema.omit({ parent_id: true }).extend({
  parent: line(NAME_MAX_BYTES).or(z.literal("")).default("").meta({
    description: "name of the parent department",
  }),
});

// A schedule of a fleet names its worker and belongs to no message.
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

// A fleet file lies next to code, so it contains no secret. The service generates one.
const webhookSchema = webhookCreateSchema.omit({ secret: true });

const buildNamedList = <S extends z.ZodObject<{ name: z.ZodType<string> }>>(schema: S) =>
  z.array(schema).max(FLEET_OBJECTS_MAX).default([]).superRefine((all, context) => {
    const seen = new Map<string, number>();
    for (const [index, { name }] of all.entries()) {
      const key = normalizeName(name as string);
      const first = seen.get(key);
      if (first === undefined) seen.set(key, index);
      else {context.addIssue({
          code: "custom",
          path: [index, "name"],
          message: `is a duplicate of entry ${first}`,
        });}
    }
  });

/** A fleet file. Objects have names instead of ids, and an absent field has its default (contract 16). */
export const fleetSchema = z.strictObject({
  fleet: nameText().default(FLEET_DEFAULT).meta({
    description: "name of the fleet that manages these objects",
  }),
  departments: buildNamedList(departmentSchema),
  workers: buildNamedList(workerCreateSchema),
  schedules: buildNamedList(scheduleSchema),
  budgets: buildNamedList(budgetCreateSchema),
  webhooks: buildNamedList(webhookSchema),
  memory: z.record(line(KEY_MAX_BYTES), text(CONTENT_MAX_BYTES)).default({}).refine(
    (entries) => Object.keys(entries).length <= MEMORY_ENTRIES_MAX,
    { error: `must be at most ${MEMORY_ENTRIES_MAX} entries` },
  ).meta({ description: "global memory, by key" }),
}).meta({ id: "Fleet", examples: [{ departments: [{ name: "News" }], workers: [{ name: "Ada" }] }] });
export type Fleet = z.output<typeof fleetSchema>;

/** A fleet without default values. */
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
    description: "delete objects that this fleet manages and the file does not name",
  }),
  adopt: z.boolean().default(false).meta({
    description: "take over objects that this fleet does not manage",
  }),
};

export const fleetPlanInput = z.strictObject(options).meta({
  id: "FleetPlanInput",
  examples: [{ fleet: {} }],
});

export const fleetApplyInput = z.strictObject({
  ...options,
  plan: z.string().optional().meta({
    description: "hash of the reviewed plan; a different plan is a conflict",
  }),
}).meta({ id: "FleetApply", examples: [{ fleet: { workers: [{ name: "Ada" }] } }] });

export type FleetPlanInput = z.output<typeof fleetPlanInput>;
export type FleetApply = z.output<typeof fleetApplyInput>;

const changeSchema = z.strictObject({
  action: z.enum(FLEET_ACTIONS).meta({ description: "adopt: the fleet takes over the unchanged object" }),
  kind: z.enum(FLEET_KINDS),
  name: z.string(),
  fields: z.array(z.strictObject({ name: z.string(), before: z.unknown(), after: z.unknown() })),
});

export const fleetPlanSchema = z.strictObject({
  hash: z.string(),
  changes: z.array(changeSchema),
  conflicts: z.array(z.strictObject({ kind: z.enum(FLEET_KINDS), name: z.string(), detail: z.string() })),
}).meta({ id: "FleetPlan" });
export type FleetPlan = z.output<typeof fleetPlanSchema>;
export type FleetChange = z.output<typeof changeSchema>;

/** An object of a fleet in its form for comparison. */
export interface FleetObject {
  kind: FleetKind;
  name: string;
  fields: Record<string, unknown>;
}

export interface PresentObject extends FleetObject {
  id: string;
  /** The fleet that manages the object, or null. */
  managedBy: string | null;
}
