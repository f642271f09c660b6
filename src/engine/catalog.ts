import { LRUCache } from "lru-cache";
import type { StoredBudget } from "../domain/workers/budget.ts";
import type { EngineConfig, EngineConfigs } from "./config.ts";
import type { AnyAdapter } from "./protocol/adapter.ts";
import { ADAPTERS, findAdapter, needsNoConfiguration } from "./kinds.ts";
import { buildAgentEngine } from "./agent.ts";
import { buildBuiltInEngine } from "./built_in.ts";
import { buildCacheOptions } from "../base/memoize.ts";
import type { Availability, Engine, EngineRun, Machine } from "./engine.ts";
import type { GatewayKind } from "../domain/call/vocabulary.ts";
import { buildProgramEngine } from "./program.ts";

// An engine has one entry for each worker with a login problem.
const UNUSABLE_MAX = 10_000;

/** Holds the configured engines, those that need no configuration, and the name of the default (contract 7). */
export class Catalog {
  readonly defaultName: string;
  readonly configured: readonly string[];
  readonly #engines = new Map<string, Engine>();
  readonly #machine: Machine;
  /** By engine, the state directories of the workers for which the engine could not be started. "" means every worker. */
  readonly #unusable = new Map<string, LRUCache<string, true>>();

  constructor({ defaultName, configured, defaultsFor }: EngineConfigs, machine: Machine) {
    this.defaultName = defaultName;
    this.#machine = machine;
    this.configured = Object.keys(configured);
    for (const adapter of ADAPTERS.filter(needsNoConfiguration)) {
      const { kind } = adapter;
      this.#engines.set(kind, this.#watch(buildEngine(kind, defaultsFor(kind), machine, adapter)));
    }
    for (const [name, engine] of Object.entries(configured)) {
      const adapter = findAdapter(engine.kind);
      if (adapter !== undefined) {
        this.#engines.set(name, this.#watch(buildEngine(name, engine, machine, adapter)));
      }
    }
  }

  /** Names in alphabetical order. */
  get names(): string[] {
    return [...this.#engines.keys()].sort();
  }

  /** Returns the engine of this name, or the default engine for "". Returns null if there is none. */
  find(name: string): Engine | null {
    return this.#engines.get(name === "" ? this.defaultName : name) ?? null;
  }

  /**
   * Builds a variant of an agent engine that reaches its model through a gateway of the service, for one run on a runner. Its processes end
   * with the run, because the service knows no other key than the run's token there. Returns null if there is no such engine.
   */
  buildThrough(name: string, gateway: { name: string; kind: GatewayKind }): Engine | null {
    const engine = this.find(name);
    const adapter = findAdapter(engine?.kind);
    if (engine === null || adapter?.driver !== "agent") return null;
    const config = { ...engine.config, gateway: gateway.name, warm: undefined };
    const machine = { ...this.#machine, gateways: { [gateway.name]: gateway.kind }, keepAlive: null };
    return buildEngine(engine.name, config, machine, adapter);
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

  /** Checks whether the engine of this name can be started; `findStateDir` returns its state directory. */
  async probeOne(name: string, findStateDir: (engine: Engine) => string | null): Promise<Availability> {
    const engine = this.find(name);
    if (engine === null) return { usable: false, version: "", detail: `no engine is called ${name}` };
    const stateDir = findStateDir(engine);
    const found = await engine.probe(stateDir);
    this.#note(engine, stateDir, found.usable);
    return found;
  }

  /** Returns whether no engine has this name, or the latest check or run could not start it for at least one worker. Reads no disk. */
  isDoubtful(name: string): boolean {
    const engine = this.find(name);
    return engine === null || (this.#unusable.get(engine.name)?.size ?? 0) > 0;
  }

  /** Returns whether the latest check or run could not start the engine for this worker. Reads no disk. */
  isKnownUnusable(name: string, findStateDir: (engine: Engine) => string | null): boolean {
    const engine = this.find(name);
    if (engine === null) return true;
    const known = this.#unusable.get(engine.name);
    return known !== undefined && (known.has("") || known.has(findStateDir(engine) ?? ""));
  }

  #note(engine: Engine, stateDir: string | null, isUsable: boolean): void {
    const known = this.#unusable.get(engine.name);
    if (isUsable) { for (const one of ["", stateDir ?? ""]) known?.delete(one); }
    else if (known !== undefined) known.set(stateDir ?? "", true);
    else {
      const first = new LRUCache<string, true>(buildCacheOptions(UNUSABLE_MAX));
      this.#unusable.set(engine.name, first.set(stateDir ?? "", true));
    }
  }

  #watch(engine: Engine): Engine {
    const start = async (run: EngineRun) => {
      const outcome = await engine.start(run);
      // A missing program makes the engine unusable for every worker.
      if (outcome.failure === "spawn_failed") this.#note(engine, null, false);
      else if (outcome.status === "completed") this.#note(engine, run.stateDir, true);
      return outcome;
    };
    return { ...engine, start };
  }

  /**
   * Ends the idle processes of this worker, of all workers with null, and those in a turn after it. "" means every process that stays
   * open. Resolves when the idle ones have ended.
   */
  async release(workerId: string | null): Promise<void> {
    await Promise.all([...this.#engines.values()].map((engine) => engine.release?.(workerId)));
  }

  /** Checks whether each engine can be started, one at a time, because each check starts a program. */
  async probe(): Promise<Record<string, Availability>> {
    const found: Record<string, Availability> = {};
    for (const [name, engine] of [...this.#engines].sort(([one], [other]) => one < other ? -1 : 1)) {
      found[name] = await this.probeOne(engine.name, () => null);
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
