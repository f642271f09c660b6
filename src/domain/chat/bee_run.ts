import { z } from "zod";
import { usageSchema } from "../work/execution.ts";
import { id, time, truncated } from "../call/field.ts";
import { BEE_RUN_STATUSES, FAILURES } from "../call/vocabulary.ts";

export const beeRunSchema = z.strictObject({
  id,
  message_id: z.string(),
  session_key: z.string(),
  engine: z.string(),
  status: z.enum(BEE_RUN_STATUSES),
  reason: z.string().meta({ description: "why the message was routed this way" }),
  reply: z.string(),
  task_count: z.int(),
  error: z.string(),
  failure: z.enum(["", ...FAILURES]),
  attempt: z.int(),
  usage: usageSchema,
  created_at: time,
  completed_at: time.nullable(),
  truncated,
}).meta({ id: "BeeRun" });
export type BeeRun = z.output<typeof beeRunSchema>;
