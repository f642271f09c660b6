import { type Backoff, backoffMs } from "../../base/backoff.ts";

const RETRY: Backoff = { firstMs: 1_000, lastMs: 16_000, factor: 4 };

/** Returns the delay in ms before a lost run is retried: 1, 4, 16 s (contract 3, Task). `attempt` counts from 1. */
export function getRetryDelayMs(attempt: number): number {
  return backoffMs(RETRY, attempt);
}
