import type { OccurrenceStatus, TaskStatus } from "../../src/domain/call/vocabulary.ts";

/** How a run of the model ends. */
export type RunEnd = "completed" | "failed" | "cancelled" | "lost" | "stopped";
/** What a gate of the model comes to. */
export type GateEnd = "pass" | "skip" | "fail" | "replaced" | "again" | "lost";

/** One firing. */
export interface Firing {
  status: OccurrenceStatus;
  gateExit: number | null;
  /** An execution was made behind its gate. */
  passed: boolean;
}

/** What goes on: a gate, or a run. */
export interface Open {
  task: string;
  /** Whose lane it holds. */
  worker: string;
  kind: "gate" | "run";
  runNo: number;
  attempt: number;
  /** Another time takes its place, or somebody cancelled it. */
  marked: boolean;
}

/** What a schedule or a countdown should be. */
export interface Expected {
  type: "scheduled" | "countdown";
  worker: string;
  session: string;
  gate: boolean;
  overlap: "skip" | "queue" | "replace";
  until: number | null;
  maxRuns: number | null;
  pauseAfter: number;
  status: TaskStatus;
  paused: boolean;
  attempt: number;
  runs: number;
  runNo: number;
  nextAt: number | null;
  dueAt: number | null;
  queuedAt: number | null;
  runsEnded: number;
  failures: number;
  last: string;
  execution: string | null;
  firings: Map<number, Firing>;
}
