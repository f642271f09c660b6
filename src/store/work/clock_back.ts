// Corrects stored times of the future after the wall clock was set back (reliability CRN-4).
import { WAKEUP } from "../../base/wakeups.ts";
import type { Statement } from "../db/database.ts";

/** Makes rows due now that were due at a time the clock had already reached. Back-offs look the same and are cut short once. */
export function resetFutureDueTimes(now: number): Statement[] {
  return [
    {
      sql: "update task set due_at = ? where status = 'pending' and due_at > ? and updated_at > ?",
      args: [now, now, now],
      wakeup: WAKEUP.dispatcher,
    },
    {
      sql: "update inbound_message set due_at = ? where status = 'feeding' and due_at > ?",
      args: [now, now],
      wakeup: WAKEUP.bee,
    },
    {
      sql:
        "update outbound_message set due_at = ? where status = 'failed' and due_at is not null and due_at > ?",
      args: [now, now],
      wakeup: WAKEUP.outbox,
    },
    {
      sql: "update webhook set due_at = ? where enabled = 1 and due_at > ?",
      args: [now, now],
    },
  ];
}

/** Moves future ledger times to now: use in the future would never leave a rolling period (contract 14). */
export function resetFutureLedgerTimes(now: number): Statement {
  return { sql: "update ledger set at = ? where at > ?", args: [now, now], wakeup: WAKEUP.budget };
}
