import type { LeaseTimes } from "../../src/domain/workers/runner.ts";

/** Leases so short that a quarter of an hour sees many of them end; a runner ends a run 8 s before. */
export const SHORT_LEASES: LeaseTimes = { lease_ms: 15_000, beat_ms: 1_000, margin_ms: 1_000 };
