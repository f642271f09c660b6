import { z } from "zod";
import { content, CONTENT_MAX_BYTES, id, time } from "../call/field.ts";
import { STEER_STATUSES } from "../call/vocabulary.ts";

/** Words for one run. Further ones are refused. */
export const RUN_STEERS_MAX = 100;

/** Words that a person sends to a run in progress (contract 23). */
export const steerSchema = z.strictObject({
  id,
  execution_id: z.string(),
  worker_id: z.string(),
  session_key: z.string(),
  content: z.string(),
  status: z.enum(STEER_STATUSES).meta({
    description: "sent: written to the agent, which has not confirmed it; delivered: confirmed by the agent",
  }),
  follow_up_task_id: z.string().nullable().meta({
    description: "the task that got the words, because the run ended without them",
  }),
  created_by: z.string(),
  created_at: time,
  delivered_at: time.nullable(),
}).meta({ id: "Steer" });
export type Steer = z.output<typeof steerSchema>;

export const steerCreateSchema = z.strictObject({ content: content(CONTENT_MAX_BYTES) }).meta({
  id: "SteerCreate",
  examples: [{ content: "Only the tests, please" }],
});
export type SteerCreate = z.output<typeof steerCreateSchema>;

/** Words that a run has yet to pass on to its agent. */
export type QueuedSteer = Pick<Steer, "id" | "content">;

/** Precedes the words of a follow-up task that the agent may know. */
export const MAYBE_SEEN = "You may have read this already, at the end of your last run.\n\n";

/** Formats the words that were sent to earlier attempts of a task, for the prompt of the next one. */
export function formatSteers(contents: readonly string[]): string {
  if (contents.length === 0) return "";
  return `While you worked on this before, people added (you may have read it already):\n\n${
    contents.join("\n\n")
  }`;
}
