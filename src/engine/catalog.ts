import { type Config, ENGINE_KINDS, type EngineConfig, engineSchema } from "../config/schema.ts";
import type { Adapter } from "./adapter.ts";
import { agentEngine } from "./agent.ts";
import { claude } from "./adapters/claude.ts";
import { codex } from "./adapters/codex.ts";
import { commandEngine } from "./adapters/command.ts";
import { copilot } from "./adapters/copilot.ts";
import { echoEngine } from "./adapters/echo.ts";
import type { Availability, Engine, Machine } from "./engine.ts";
import { gemini } from "./adapters/gemini.ts";
import { goose } from "./adapters/goose.ts";
import { opencode } from "./adapters/opencode.ts";
import { qwen } from "./adapters/qwen.ts";

const ADAPTERS: Record<string, Adapter> = { claude, codex, gemini, opencode, qwen, copilot, goose };

/** The engines that are configured or exist by their own name, and which is the default (contract 7). */
export class Catalog {
  readonly defaultName: string;
  /** Those that the configuration names. */
  readonly configured: readonly string[];
  readonly #engines = new Map<string, Engine>();

  constructor(config: Config, machine: Machine) {
    const { default: standard, ...configured } = config.engines;
    this.defaultName = standard;
    this.configured = Object.keys(configured);
    for (const kind of ENGINE_KINDS) {
      if (kind !== "command") this.#add(kind, engineSchema.parse({ kind }), machine);
    }
    for (const [name, engine] of Object.entries(configured)) this.#add(name, engine, machine);
  }

  #add(name: string, config: EngineConfig, machine: Machine): void {
    const adapter = ADAPTERS[config.kind ?? ""];
    if (adapter !== undefined) this.#engines.set(name, agentEngine(name, config, machine, adapter));
    else if (config.kind === "command") this.#engines.set(name, commandEngine(name, config, machine));
    else if (config.kind === "echo") this.#engines.set(name, echoEngine(name, config));
  }

  /** Names in alphabetical order. */
  get names(): string[] {
    return [...this.#engines.keys()].sort();
  }

  /** The engine of this name, "" meaning the default; null when there is none. */
  find(name: string): Engine | null {
    return this.#engines.get(name === "" ? this.defaultName : name) ?? null;
  }

  /** Whether the engine of this name can be started, with the state that it would have. */
  async probeOne(name: string, stateDirOf: (engine: Engine) => string | null): Promise<Availability> {
    const engine = this.find(name);
    if (engine === null) return { usable: false, version: "", detail: `no engine is called ${name}` };
    return await engine.probe(stateDirOf(engine));
  }

  /** Whether each engine can be started, by name; asked one after the other, since each is a program that starts. */
  async probe(): Promise<Record<string, Availability>> {
    const found: Record<string, Availability> = {};
    for (const [name, engine] of [...this.#engines].sort(([one], [other]) => one < other ? -1 : 1)) {
      found[name] = await engine.probe(null);
    }
    return found;
  }
}
