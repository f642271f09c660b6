/** Places where a test can make the service fail. */
export const FAULT_POINTS = [
  "accept.pre-commit",
  "accept.post-commit",
  "routing",
  "claim.post",
  "launch.stored",
  "launch.starting",
  "launch.printed",
  "launch.launched",
  "launch.claimed",
  "launch.ended",
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
  "tree.fetched",
  "tree.made",
  "tree.started",
  "tree.packed",
  "tree.imported",
  "tree.moved",
  "repo.part",
  "repo.imported",
  "repo.stored",
  "skill.fetched",
  "skill.written",
  "skill.kept",
  "push.pre",
  "push.post",
  "device.post",
  "steer.accepted",
  "steer.marked",
  "steer.written",
  "backup.mid",
  "migrate.step",
  "rotate.pre-commit",
  "rotate.post-commit",
  "rotate.placed",
] as const;

export type FaultPoint = (typeof FAULT_POINTS)[number];

let hit: ((point: FaultPoint) => void) | null = null;

/** Marks a fault point. Without SVC_FAULT the call does nothing and loads nothing. */
export function faultPoint(point: FaultPoint): void {
  hit?.(point);
}

/** Sets the action at fault points, or removes it with null. */
export function armFaults(action: ((point: FaultPoint) => void) | null): void {
  hit = action;
}
