import type { LeaseTimes } from "../../src/domain/workers/runner.ts";

/** Short leases, so that many of them end in a quarter of an hour. A runner ends a run 8 s earlier. */
export const SHORT_LEASES: LeaseTimes = { lease_ms: 15_000, beat_ms: 1_000, margin_ms: 1_000 };
