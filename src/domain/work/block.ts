import { z } from "zod";
import { time } from "../call/field.ts";
import { HOLD_KINDS } from "../call/vocabulary.ts";

/** The cause that blocks a pending task (contract 14). */
export const heldBySchema = z.strictObject({
  kind: z.enum(HOLD_KINDS),
  id: z.string().meta({ description: "the budget, the engine, or the object that reached a run limit" }),
  until: time.nullable().meta({ description: "when it ends if nothing changes; null: unknown" }),
}).meta({ id: "HeldBy" });

/** Which blocked tasks of a queue: all, those of one conversation, or those that no person waits for. */
type BlockedTasks = { kind: "all" } | { kind: "conversation"; session_key: string } | { kind: "patient" };

/** Formats the end of a block for its `reason`. */
export function formatResume(until: number | null): string {
  return until === null ? "" : `; resumes at ${new Date(until).toISOString()}`;
}

/** A block of pending tasks. Tasks with the same `held` start together, so one check covers them. */
export interface Block {
  /** `<kind>:<id>`. The kind `reserve` (the engine's quota window) blocks only some tasks. */
  held: string;
  until: number | null;
  reason: string;
  whom: BlockedTasks;
}
