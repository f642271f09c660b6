// What a run uses, and what its engine says of its provider, while it runs
import type { Clock } from "../base/clock.ts";
import { logger } from "../base/log.ts";
import { sane, type Usage } from "../domain/execution.ts";
import type { ProviderWindow } from "../engine/adapter.ts";
import type { EngineConfig } from "../engine/config.ts";
import type { Engine } from "../engine/engine.ts";
import type { Database, Statement } from "../store/database.ts";
import { saveWindow } from "../store/engine_window.ts";
import { countUse } from "../store/ledger.ts";

const log = logger("executor");

const MILLION = 1_000_000;

/** The use with its cost by the prices of the engine; without prices what the engine says counts. It is an estimate (contract 14). */
export function priced(usage: Usage, prices: EngineConfig["prices"]): Usage {
  if (prices === undefined || usage.input_tokens === null && usage.output_tokens === null) return usage;
  const cost = (usage.input_tokens ?? 0) * prices.input + (usage.output_tokens ?? 0) * prices.output;
  return sane({ ...usage, cost_usd: Number((cost / MILLION).toFixed(9)) });
}

/**
 * Takes the reports of a run and stores them: its use beside its reservation, the provider's windows beside the engine. While
 * one report is being stored only the latest of those that come is kept: each has everything that was used before.
 */
export function meter(
  { db, clock }: { db: Database; clock: Clock },
  executionId: string,
  engine: Engine,
): { onUsage: (usage: Usage) => void; onWindows: (windows: ProviderWindow[]) => void } {
  let latest: Usage | null = null;
  let storing = false;
  const store = async () => {
    if (storing) return;
    storing = true;
    while (latest !== null) {
      const usage = latest;
      latest = null;
      await tried([countUse(executionId, priced(usage, engine.config.prices))]);
    }
    storing = false;
  };
  const tried = async (statements: Statement[]) => {
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
      const seen_at = clock.now();
      void tried(windows.map((window) => saveWindow({ ...window, engine: engine.name, seen_at })));
    },
  };
}
