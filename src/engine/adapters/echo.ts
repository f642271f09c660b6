import type { EngineConfig } from "../../config/schema.ts";
import { USAGE_UNKNOWN } from "../../domain/execution.ts";
import { type Engine, NO_SESSION } from "../engine.ts";

/** The built-in engine for trying and testing: it answers with its instruction (contract 7). */
export function echoEngine(name: string, config: EngineConfig): Engine {
  return {
    name,
    kind: "echo",
    config,
    external: false,
    agent: false,
    passes: [],
    probe: () => Promise.resolve({ usable: true, version: "", detail: "built in" }),
    start(run) {
      run.onStart();
      run.log.line(run.instruction);
      return Promise.resolve({
        status: "completed",
        text: run.instruction,
        failure: "",
        error: "",
        exitCode: 0,
        usage: USAGE_UNKNOWN,
        ...NO_SESSION,
      });
    },
  };
}
