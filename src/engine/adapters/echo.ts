import type { BuiltInAdapter } from "../protocol/adapter.ts";

/** An engine for trials and tests, which answers with the instruction (contract 7). */
export const echo: BuiltInAdapter = {
  driver: "built_in",
  kind: "echo",
  program: null,
  answer: (instruction) => instruction,
};
