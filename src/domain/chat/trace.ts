import { z } from "zod";
import { beeRunSchema } from "./bee_run.ts";
import { executionSchema } from "../work/execution.ts";
import { inboundSchema, outboundSchema } from "./message.ts";
import { taskSchema } from "../work/task.ts";

/** History of a message. Each list is oldest first. */
export const traceSchema = z.strictObject({
  message: inboundSchema,
  parts: z.array(inboundSchema).meta({
    description: "the message and its merged parts, in order of arrival",
  }),
  routing: z.array(beeRunSchema).meta({ description: "decisions of the bee, with reasons" }),
  tasks: z.array(taskSchema),
  executions: z.array(executionSchema),
  replies: z.array(outboundSchema),
}).meta({ id: "MessageTrace" });
export type MessageTrace = z.output<typeof traceSchema>;
