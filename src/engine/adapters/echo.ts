import type { BuiltInAdapter } from "../adapter.ts";

/** For trying and testing: it answers with its instruction (contract 7). */
export const echo: BuiltInAdapter = {
  driver: "built_in",
  kind: "echo",
  program: null,
  answer: (instruction) => instruction,
};
