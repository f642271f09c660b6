import { setImmediate } from "node:timers";

const FAIR_EVERY_MS = 5;

let lastFairAt = -Infinity;

/**
 * Yields this turn of the event loop, so that long work does not block others. Under Deno a chain of setImmediate() starves
 * the network (facts, Deno 12), so a timer interrupts it every few milliseconds. A timer alone would cost a millisecond each
 * time.
 */
export function yieldToLoop(): Promise<void> {
  return new Promise((resolve) => {
    if (performance.now() - lastFairAt < FAIR_EVERY_MS) return void setImmediate(resolve);
    setTimeout(() => {
      lastFairAt = performance.now();
      resolve();
    }, 0);
  });
}
