import type { ProgramAdapter } from "../adapter.ts";

/** Any program as a worker, such as a script. The configuration names it. */
export const command: ProgramAdapter = { driver: "program", kind: "command", program: "" };
