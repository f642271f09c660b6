import { z } from "zod";
import { id, time } from "../call/field.ts";
import { HOLD_KINDS } from "../call/vocabulary.ts";
import { isLauncherHold } from "./launch.ts";

/** The cause that blocks a pending task (contract 14). */
export const heldBySchema = z.strictObject({
  kind: z.enum(HOLD_KINDS),
  id: z.string().meta({
    description: "the budget, the engine, the object that reached a run limit, or the first task of `ids`",
  }),
  ids: z.array(id).optional().meta({ description: "kind task: the tasks that have not ended" }),
  until: time.nullable().meta({ description: "when it ends if nothing changes; null: unknown" }),
  advice: z.string().meta({ description: "the way out, for people" }),
}).meta({ id: "HeldBy" });
export type HeldBy = z.output<typeof heldBySchema>;

export const HOLD_ADVICE: Record<(typeof HOLD_KINDS)[number], string> = {
  budget: "Wait, raise the budget, or lift it for a while.",
  engine: "Wait, or lift the limit if the provider accepts requests again.",
  launch: "Wait for its job, or cancel the task.",
  run_limit: "Wait, or raise limits.max_runs_per_hour in the configuration.",
  runner: "Start a runner that has the labels of the worker.",
  task: "Wait until they have ended, or cancel this task.",
};

/** The way out of a block by a launcher that is paused, or waits before it tries again. */
export const LAUNCHER_ADVICE =
  "Fix what the reason names. The launcher tries again by itself; if it is paused, resume it.";

/** Whether a task waits for a runner, or for a launcher that starts none now. */
export function isPlaceHold(held: string): boolean {
  return held.startsWith("runner:") || isLauncherHold(held);
}

/** Which blocked tasks of a queue: all, those of one conversation, or those that no person waits for. */
type BlockedTasks = { kind: "all" } | { kind: "conversation"; session_key: string } | { kind: "patient" };

/** Formats the end of a block for its `reason`. */
export function formatResume(until: number | null): string {
  // To the minute, rounded up: a person who comes back then finds it resumed.
  if (until === null) return "";
  return `; resumes at ${
    new Date(Math.ceil(until / 60_000) * 60_000).toISOString().slice(0, 16).replace("T", " ")
  } UTC`;
}

/** A block of pending tasks. Tasks with the same `held` start together, so one check covers them. */
export interface Block {
  /** `<kind>:<id>`. The kind `reserve` (the engine's quota window) blocks only some tasks. */
  held: string;
  until: number | null;
  reason: string;
  whom: BlockedTasks;
}
