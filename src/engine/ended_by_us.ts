import type { EngineConfig } from "./config.ts";
import type { Failure } from "../domain/vocabulary.ts";
import type { ProcessEnd } from "./process/process.ts";

/** The failure and its message when we ended the run: a time limit or a cancel (contract 3, Execution). */
export function endedByUs(reason: ProcessEnd["reason"], config: EngineConfig): [Failure, string] {
  if (reason === "timeout") {
    return ["timeout", `ran longer than ${config.timeout / 1000} s (engines.<name>.timeout)`];
  }
  if (reason === "idle_timeout") {
    return ["idle_timeout", `said nothing for ${config.idle_timeout / 1000} s (engines.<name>.idle_timeout)`];
  }
  return ["cancelled", "the run was ended"];
}
