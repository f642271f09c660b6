/** How the waits between tries grow: from `firstMs` by `factor` (2 unless said otherwise) up to `lastMs`. */
export interface Backoff {
  firstMs: number;
  lastMs: number;
  factor?: number;
}

/** Ms to wait after the failed try number `attempt`, counted from 1. */
export function backoffMs({ firstMs, lastMs, factor = 2 }: Backoff, attempt: number): number {
  return Math.min(firstMs * factor ** Math.max(0, attempt - 1), lastMs);
}
