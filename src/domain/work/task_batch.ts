import { z } from "zod";
import { id } from "../call/field.ts";
import { taskCreateSchema, taskSchema } from "./task.ts";

export const TASK_BATCH_MAX = 500;

/** Size limit of a batch's JSON. The service holds it in memory and commits it as one batch. */
export const TASK_BATCH_MAX_BYTES = 8 * 1024 * 1024;

export const taskBatchCreateSchema = z.strictObject({
  tasks: z.array(taskCreateSchema).min(1, { error: "must not be empty" }).max(TASK_BATCH_MAX),
}).meta({
  id: "TaskBatchCreate",
  examples: [
    {
      tasks: ["Sum up the day", "Say hello"].map((instruction) => ({
        message_id: "nightly-report",
        worker_id: "01a1fd23-4a4c-746f-99ac-8860e2641168",
        instruction,
        type: "immediate",
      })),
    },
  ],
});
export type TaskBatchCreate = z.output<typeof taskBatchCreateSchema>;

/** The new fields of each task, in the order of the request. */
export const taskBatchSchema = z.strictObject({
  tasks: z.array(z.strictObject({
    id,
    status: taskSchema.shape.status,
    reason: z.string().meta({ description: "why it is cancelled" }),
  })),
}).meta({ id: "TaskBatch" });
export type TaskBatch = z.output<typeof taskBatchSchema>;
