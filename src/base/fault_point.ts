/** Test fault points: the places where a test can break the service. */
export const FAULT_POINTS = [
  "accept.pre-commit",
  "accept.post-commit",
  "routing",
  "claim.post",
  "gate.pre-commit",
  "spawn.pre",
  "spawn.post",
  "pid.recorded",
  "exit.seen",
  "outcome.pre-commit",
  "outcome.post-commit",
  "outbox.post",
  "log.append",
  "upload.part",
  "cron.tick",
  "cancel.mid",
  "backup.mid",
  "migrate.step",
] as const;

export type FaultPoint = (typeof FAULT_POINTS)[number];

let hit: ((point: FaultPoint) => void) | null = null;

/** Marks a test fault point. Without SVC_FAULT it does nothing, and nothing is loaded for it. */
export function faultPoint(point: FaultPoint): void {
  hit?.(point);
}

/** Sets what happens at test fault points; null for nothing. */
export function armFaults(action: ((point: FaultPoint) => void) | null): void {
  hit = action;
}
