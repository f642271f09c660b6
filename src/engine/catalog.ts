import type { StoredBudget } from "../domain/workers/budget.ts";
import type { EngineConfig, EngineConfigs } from "./config.ts";
import type { AnyAdapter } from "./protocol/adapter.ts";
import { ADAPTERS, findAdapter, needsNoConfiguration } from "./kinds.ts";
import { buildAgentEngine } from "./agent.ts";
import { buildBuiltInEngine } from "./built_in.ts";
import type { Availability, Engine, Machine } from "./engine.ts";
import { buildProgramEngine } from "./program.ts";

/** Holds the configured engines, those that need no configuration, and the name of the default (contract 7). */
export class Catalog {
  readonly defaultName: string;
  readonly configured: readonly string[];
  readonly #engines = new Map<string, Engine>();

  constructor({ defaultName, configured, defaultsFor }: EngineConfigs, machine: Machine) {
    this.defaultName = defaultName;
    this.configured = Object.keys(configured);
    for (const adapter of ADAPTERS.filter(needsNoConfiguration)) {
      const { kind } = adapter;
      this.#engines.set(kind, buildEngine(kind, defaultsFor(kind), machine, adapter));
    }
    for (const [name, engine] of Object.entries(configured)) {
      const adapter = findAdapter(engine.kind);
      if (adapter !== undefined) this.#engines.set(name, buildEngine(name, engine, machine, adapter));
    }
  }

  /** Names in alphabetical order. */
  get names(): string[] {
    return [...this.#engines.keys()].sort();
  }

  /** Returns the engine of this name, the default for "", or null. */
  find(name: string): Engine | null {
    return this.#engines.get(name === "" ? this.defaultName : name) ?? null;
  }

  /** Whether a budget can be tested: US dollars need prices, or an engine that reports its cost (contract 14). */
  canMeasure({ unit, target }: Pick<StoredBudget, "unit" | "target">): boolean {
    if (unit !== "usd") return true;
    const names = target.startsWith("engine:") ? [target.slice(7)] : [this.defaultName, ...this.configured];
    return names.some((name) => {
      const engine = this.find(name);
      return engine !== null && (engine.reportsCost || engine.config.prices !== undefined);
    });
  }

  /** Checks whether the engine of this name can be started; `stateDirOf` returns its state directory. */
  async probeOne(name: string, stateDirOf: (engine: Engine) => string | null): Promise<Availability> {
    const engine = this.find(name);
    if (engine === null) return { usable: false, version: "", detail: `no engine is called ${name}` };
    return await engine.probe(stateDirOf(engine));
  }

  /** Ends the idle processes of this worker, or with "" every process that stays open. Resolves when they have ended. */
  async release(workerId: string): Promise<void> {
    await Promise.all([...this.#engines.values()].map((engine) => engine.release?.(workerId)));
  }

  /** Checks whether each engine can be started, one at a time, because each check starts a program. */
  async probe(): Promise<Record<string, Availability>> {
    const found: Record<string, Availability> = {};
    for (const [name, engine] of [...this.#engines].sort(([one], [other]) => one < other ? -1 : 1)) {
      found[name] = await engine.probe(null);
    }
    return found;
  }
}

function buildEngine(name: string, config: EngineConfig, machine: Machine, adapter: AnyAdapter): Engine {
  switch (adapter.driver) {
    case "agent":
      return buildAgentEngine(name, config, machine, adapter);
    case "program":
      return buildProgramEngine(name, config, machine, adapter);
    case "built_in":
      return buildBuiltInEngine(name, config, adapter);
  }
}
