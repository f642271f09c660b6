import { makeBackup } from "../api/backup.ts";
import type { Parts } from "../api/parts.ts";
import type { Config } from "../config/schema.ts";
import { createBackups } from "../pipeline/backups.ts";
import { createBudgets } from "../pipeline/budgets.ts";
import type { Stage } from "../pipeline/loop.ts";
import { createRetention } from "../pipeline/retention.ts";

/** The stages that move no work: they watch over budgets, delete what is old enough, and make backups. */
export function createUpkeep(
  parts: Parts,
  config: Config,
  stopRun: (executionId: string, words: string) => Promise<void>,
): Stage[] {
  const { db, clock, bells, engines, timeZone, paths } = parts;
  const base = { db, clock, bells };
  return [
    createBudgets({ ...base, engines, timeZone, stopRun }),
    createRetention({ ...base, paths, config: config.retention }),
    createBackups({
      ...base,
      timeZone,
      config: config.backup,
      make: () => makeBackup(parts, { actor: "system", key: false }),
    }),
  ];
}
