import type { ProgramAdapter } from "../protocol/adapter.ts";

/** Any program, such as a script. The configuration names it (contract 7). */
export const command: ProgramAdapter = { driver: "program", kind: "command", program: "" };
