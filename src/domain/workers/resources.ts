import { z } from "zod";
import { DURATION, parseDurationMs } from "../../base/duration.ts";
import { MEMORY } from "./isolation.ts";

const CPUS_MAX = 100_000;
const GPUS_MAX = 100_000;
const TIME_MAX_MS = 365 * 86_400_000;

/** The resources that a launcher requests from its scheduler. Absent: the scheduler's default. */
export const resourcesSchema = z.strictObject({
  cpus: z.number().positive().max(CPUS_MAX).meta({ description: "processors, such as 0.5 or 2" }),
  memory: z.string().regex(MEMORY, { error: "must be bytes, such as 2G or 512M" }),
  gpus: z.int().min(0).max(GPUS_MAX),
  time: z.string().regex(DURATION, { error: "must be a duration such as 30m, 2h or 1d" })
    .refine((text) => isTime(parseDurationMs(text)), { error: "must be 1s to 365d" })
    .meta({ description: "longest time of a run" }),
}).partial();
export type Resources = z.output<typeof resourcesSchema>;

function isTime(ms: number | null): boolean {
  return ms !== null && ms >= 1_000 && ms <= TIME_MAX_MS;
}

const UNIT_BYTES: Record<string, number> = { K: 2 ** 10, M: 2 ** 20, G: 2 ** 30, T: 2 ** 40 };

/**
 * Returns the variables of a launcher's command: processors, memory in MiB, GPUs, and seconds. Rounds up, because a run needs what its worker
 * asks for. A variable of a resource that the worker doesn't name is absent.
 */
export function buildResourceVariables(resources: Resources | null): Record<string, string> {
  const { cpus, memory, gpus, time } = resources ?? {};
  return {
    ...(cpus === undefined ? {} : { SVC_RUN_CPUS: String(cpus) }),
    ...(memory === undefined ? {} : { SVC_RUN_MEMORY: String(Math.ceil(parseBytes(memory) / 2 ** 20)) }),
    ...(gpus === undefined ? {} : { SVC_RUN_GPUS: String(gpus) }),
    ...(time === undefined ? {} : { SVC_RUN_TIME: String(Math.ceil((parseDurationMs(time) ?? 0) / 1_000)) }),
  };
}

function parseBytes(memory: string): number {
  return parseInt(memory, 10) * (UNIT_BYTES[memory.slice(-1)] ?? 1);
}
