import type { EngineConfig } from "./config.ts";
import type { BuiltInAdapter } from "./protocol/adapter.ts";
import { buildCompletedOutcome, type Engine } from "./engine.ts";
import { findProgramServerFault } from "./server_scripts.ts";

/** Builds an engine that runs inside this process, without a program and without sessions. */
export function buildBuiltInEngine(name: string, config: EngineConfig, adapter: BuiltInAdapter): Engine {
  return {
    name,
    kind: adapter.kind,
    config,
    external: false,
    agent: false,
    // Built-in engines use no tokens and cost nothing.
    reportsLiveUsage: true,
    reportsCost: true,
    idleMax: 0,
    steers: false,
    inheritedVariables: [],
    adapterVariables: [],
    skillFault: `the engine ${name} has no skills`,
    findServerFault: (servers) => findProgramServerFault(name, servers),
    findProblem: () => null,
    probe: () => Promise.resolve({ usable: true, version: "", detail: "built in" }),
    start(run) {
      run.onStart();
      const text = adapter.answer(run.instruction);
      run.log.line(text);
      return Promise.resolve(buildCompletedOutcome(text));
    },
  };
}
