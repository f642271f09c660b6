import type { OccurrenceStatus, TaskStatus } from "../../src/domain/call/vocabulary.ts";

export type RunEnd = "completed" | "failed" | "cancelled" | "lost" | "stopped";
export type GateEnd = "pass" | "skip" | "fail" | "replaced" | "again" | "lost";

export interface Firing {
  status: OccurrenceStatus;
  gateExit: number | null;
  /** The gate passed, and an execution exists. */
  passed: boolean;
}

/** A gate or a run in progress. */
export interface Open {
  task: string;
  /** The worker whose work directory it locks. */
  worker: string;
  kind: "gate" | "run";
  runNo: number;
  attempt: number;
  /** Replaced by another time, or cancelled by a user. */
  marked: boolean;
}

/** Expected state of a task. */
export interface Expected {
  type: "immediate" | "scheduled" | "countdown";
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
