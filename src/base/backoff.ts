/** Delays between attempts: from `firstMs`, times `factor` (default 2), up to `lastMs`. */
export interface Backoff {
  firstMs: number;
  lastMs: number;
  factor?: number;
}

/** Returns the delay in ms after a failed attempt. `attempt` is 1 for the first one. */
export function backoffMs({ firstMs, lastMs, factor = 2 }: Backoff, attempt: number): number {
  return Math.min(firstMs * factor ** Math.max(0, attempt - 1), lastMs);
}
