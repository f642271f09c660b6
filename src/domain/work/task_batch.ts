import { z } from "zod";
import { id } from "../call/field.ts";
import { taskCreateSchema, taskSchema } from "./task.ts";

/** Most tasks of one batch. */
export const TASK_BATCH_MAX = 500;

/** Largest JSON of a batch: all of it is held in memory, and committed at once. */
export const TASK_BATCH_MAX_BYTES = 8 * 1024 * 1024;

/** Body of POST /api/tasks/batch (contract 3, Task). */
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

/** Answer of POST /api/tasks/batch: what nobody knew before, of each task, in the order of the request. */
export const taskBatchSchema = z.strictObject({
  tasks: z.array(z.strictObject({
    id,
    status: taskSchema.shape.status,
    reason: z.string().meta({ description: "why it is cancelled" }),
  })),
}).meta({ id: "TaskBatch" });

export type TaskBatch = z.output<typeof taskBatchSchema>;
