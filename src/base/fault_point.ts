/** The places where a test can break the service (promises, test bench). */
export const FAULT_POINTS = [
  "accept.pre-commit",
  "accept.post-commit",
  "claim.post",
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

/** Marks a place where a test can break the service. Without SVC_FAULT it does nothing, and nothing for it is loaded. */
export function faultPoint(point: FaultPoint): void {
  hit?.(point);
}

/** Sets what happens at fault points; null disarms them. */
export function armFaults(action: ((point: FaultPoint) => void) | null): void {
  hit = action;
}
