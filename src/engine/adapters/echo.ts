import type { BuiltInAdapter } from "../protocol/adapter.ts";

/** For trials and tests: the answer is the instruction (contract 7). */
export const echo: BuiltInAdapter = {
  driver: "built_in",
  kind: "echo",
  program: null,
  answer: (instruction) => instruction,
};
