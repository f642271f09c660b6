import { availableParallelism, loadavg } from "node:os";

const FACTOR_MAX = 10;

/** A limit in ms that holds on a machine with nothing else to do, longer by as much as this one is overloaded now. */
export function patient(ms: number): number {
  const waiting = (loadavg()[0] ?? 0) / availableParallelism();
  return ms * Math.min(FACTOR_MAX, Math.max(1, waiting));
}
