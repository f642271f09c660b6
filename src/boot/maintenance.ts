import { makeBackup } from "../api/system/backup.ts";
import type { Services } from "../api/call/services.ts";
import type { Config } from "../config/schema.ts";
import { createBackups } from "../pipeline/maintenance/backups.ts";
import { createBudgetMonitor } from "../pipeline/dispatch/budget_monitor.ts";
import type { Stage } from "../pipeline/stage/stage.ts";
import { createPushes } from "../pipeline/delivery/pushes.ts";
import { createTreeStage } from "../pipeline/maintenance/trees.ts";
import { createRetention } from "../pipeline/maintenance/retention.ts";

export function createMaintenanceStages(
  parts: Services,
  config: Config,
  stopRun: (executionId: string, words: string) => Promise<void>,
): Stage[] {
  const { db, clock, wakeups, engines, timeZone, paths, secrets, mirrors, skills } = parts;
  const base = { db, clock, wakeups };
  return [
    createBudgetMonitor({ ...base, engines, timeZone, stopRun }),
    createRetention({ ...base, paths, config: config.retention }),
    createTreeStage({
      ...{ ...base, paths, mirrors, skills },
      retentionMs: config.retention.trees,
      maxBytes: config.limits.max_tree_bytes,
    }),
    createPushes({ ...base, paths, secrets, mirrors }),
    createBackups({
      ...base,
      timeZone,
      config: config.backup,
      make: () => makeBackup(parts, { actor: "system", key: false }),
    }),
  ];
}
