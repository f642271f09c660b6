import { z } from "zod";
import { beeRunSchema } from "./bee_run.ts";
import { executionSchema } from "../work/execution.ts";
import { inboundSchema, outboundSchema } from "./message.ts";
import { taskSchema } from "../work/task.ts";

/** What became of a message: each list oldest first, each row with its times (contract 5.1). */
export const traceSchema = z.strictObject({
  message: inboundSchema,
  parts: z.array(inboundSchema).meta({
    description: "the message and what was merged into it, as they came",
  }),
  routing: z.array(beeRunSchema).meta({ description: "what the bee decided, and why" }),
  tasks: z.array(taskSchema),
  executions: z.array(executionSchema),
  replies: z.array(outboundSchema),
}).meta({ id: "MessageTrace" });

export type MessageTrace = z.output<typeof traceSchema>;
