/** The words that the API, its rows and its clients share. Without zod, so that the command line may read them (contract 6). */
export const TASK_TYPES = ["immediate", "countdown", "scheduled"] as const;
export const TASK_STATUSES = ["scheduled", "pending", "running", "completed", "failed", "cancelled"] as const;
/** A task in one of these is not over. */
export const ACTIVE_TASK_STATUSES = ["scheduled", "pending", "running"] as const;
export const EXECUTION_STATUSES = ["pending", "running", "completed", "failed"] as const;
export const INBOUND_STATUSES = ["received", "feeding", "bee_processed", "merged", "failed"] as const;
export const OUTBOUND_STATUSES = ["sent", "failed"] as const;
export const SOURCE_TYPES = ["bee", "worker", "system"] as const;
