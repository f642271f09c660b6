// Stores the usage and provider windows that a run reports
import type { Clock } from "../base/clock.ts";
import { createLogger } from "../base/log.ts";
import { addCost, type Usage } from "../domain/work/execution.ts";
import type { ProviderWindow } from "../engine/protocol/adapter.ts";
import type { EngineConfig } from "../engine/config.ts";
import type { Engine } from "../engine/engine.ts";
import type { Database, Statement } from "../store/db/database.ts";
import { findCountedUsage } from "../store/work/gateway_use.ts";
import { storeWindow } from "../store/workers/engine_window.ts";
import { updateReservationUse } from "../store/workers/budget_ledger.ts";

const log = createLogger("executor");

// Windows of one engine. A provider has two or three.
const WINDOWS_MAX = 20;

/** Chooses the usage of a run at its end. Tokens that a gateway counted replace the engine's; the cost is the engine's, else by prices. */
export async function chooseUsage(
  db: Database,
  executionId: string,
  reported: Usage,
  prices: EngineConfig["prices"],
): Promise<Usage> {
  const counted = await findCountedUsage(db, executionId);
  if (counted === null) return addCost(reported, prices);
  return { ...counted, cost_usd: reported.cost_usd ?? counted.cost_usd };
}

/**
 * Creates the listeners that store the usage of a run and the provider's windows. While a write is in progress only the latest usage and
 * the latest state of each window are kept, because usage is cumulative.
 */
export function createUsageRecorder(
  { db, clock }: { db: Database; clock: Clock },
  executionId: string,
  engine: Engine,
): { onUsage: (usage: Usage) => void; onWindows: (windows: ProviderWindow[]) => void } {
  let latest: Usage | null = null;
  const windowsNow = new Map<string, ProviderWindow>();
  let storing = false;
  const store = async () => {
    if (storing) return;
    storing = true;
    while (latest !== null || windowsNow.size > 0) {
      const usage = latest === null
        ? []
        : [updateReservationUse(executionId, addCost(latest, engine.config.prices))];
      const seen_at = clock.now();
      const windows = [...windowsNow.values()];
      latest = null;
      windowsNow.clear();
      await tryWrite([
        ...usage,
        ...windows.map((one) => storeWindow({ ...one, engine: engine.name, seen_at })),
      ]);
    }
    storing = false;
  };
  const tryWrite = async (statements: Statement[]) => {
    try {
      await db.write(statements);
    } catch (error) {
      log.warning("Cannot note what the run {id} reports: {error}", { id: executionId, error });
    }
  };
  return {
    onUsage: (usage) => {
      latest = usage;
      void store();
    },
    onWindows: (windows) => {
      for (const window of windows) {
        if (windowsNow.has(window.name) || windowsNow.size < WINDOWS_MAX) windowsNow.set(window.name, window);
      }
      void store();
    },
  };
}
