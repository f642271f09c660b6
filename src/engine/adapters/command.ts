import type { ProgramAdapter } from "../protocol/adapter.ts";

/** Any program that the configuration names, such as a script (contract 7). */
export const command: ProgramAdapter = { driver: "program", kind: "command", program: "" };
