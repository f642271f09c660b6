import { z } from "zod";
import { time } from "../call/field.ts";
import { HOLD_KINDS } from "../call/vocabulary.ts";

/** What holds a pending task, as the API shows it (contract 14). */
export const heldBySchema = z.strictObject({
  kind: z.enum(HOLD_KINDS),
  id: z.string().meta({ description: "the budget, the engine, or what has run too often" }),
  until: time.nullable().meta({ description: "when it ends by the time alone; null: nobody knows" }),
}).meta({ id: "HeldBy" });

/** Whom of a lane something holds: all, one conversation, or what no person waits for. */
type HeldTasks = { kind: "all" } | { kind: "conversation"; session_key: string } | { kind: "patient" };

/** Why a task may not start. Tasks with the same `held` may start together, so only the first of a lane is asked. */
export interface Hold {
  /** `<kind>:<id>`; the kind `reserve` is the engine's window, which holds only some. */
  held: string;
  until: number | null;
  reason: string;
  whom: HeldTasks;
}
