import { setImmediate } from "node:timers";

const FAIR_EVERY_MS = 5;

let lastFairAt = -Infinity;

/**
 * Ends this turn of the event loop, so that long work in steps lets others go on. Under Deno a chain of setImmediate() keeps
 * the network waiting until it ends (facts, Deno 12), so a timer comes between every few milliseconds; alone it would cost one each time.
 */
export function turn(): Promise<void> {
  return new Promise((resolve) => {
    if (performance.now() - lastFairAt < FAIR_EVERY_MS) return void setImmediate(resolve);
    setTimeout(() => {
      lastFairAt = performance.now();
      resolve();
    }, 0);
  });
}
