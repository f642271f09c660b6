// Corrects stored times that are in the future after the wall clock was set back (reliability CRN-4).
import { WAKEUP } from "../../base/wakeups.ts";
import type { Statement } from "../db/database.ts";

/**
 * After the clock was set back, makes rows with a due time in the future due now. A row that waits for its retry looks the same, so
 * that wait is cut short once.
 */
export function resetFutureDueTimes(now: number): Statement[] {
  return [
    {
      sql:
        "update task set due_at = ? where status = 'pending' and open_parents = 0 and due_at > ? and updated_at > ?",
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

/** Changes ledger times in the future to now. Otherwise their use would count in a rolling period for too long (contract 14). */
export function resetFutureLedgerTimes(now: number): Statement {
  return { sql: "update ledger set at = ? where at > ?", args: [now, now], wakeup: WAKEUP.budget };
}
