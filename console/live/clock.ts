import { computed, signal } from "@preact/signals";

/** How many ms the service's clock is ahead of this browser's clock. */
export const clockOffsetMs = signal(0);

const tick = signal(Date.now());
setInterval(() => {
  if (!document.hidden) tick.value = Date.now();
}, 1_000);
document.addEventListener("visibilitychange", () => tick.value = Date.now());

// The `date` header has whole seconds, so a small offset may be rounding.
const OFFSET_MIN_MS = 5_000;

/** The service's time in Unix ms, updated every second. */
export const secondNow = computed(() =>
  tick.value + (Math.abs(clockOffsetMs.value) < OFFSET_MIN_MS ? 0 : clockOffsetMs.value)
);

/** The service's time in Unix ms, updated every ten seconds. */
export const now = computed(() => Math.floor(secondNow.value / 10_000) * 10_000);
