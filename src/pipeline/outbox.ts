// failed (waiting) -> sent, or failed for good
import { type Backoff, backoffMs } from "../base/backoff.ts";
import type { Clock } from "../base/clock.ts";
import type { JournalEntry } from "../domain/journal.ts";
import { faultPoint } from "../base/fault_point.ts";
import { logger } from "../base/log.ts";
import type { Platform } from "../platform/platform.ts";
import type { Database } from "../store/database.ts";
import { moved } from "../store/journal.ts";
import { deferOutbound, deliveredOutbound, type DueOutbound, listDueOutbound } from "../store/outbound.ts";
import { BELL, type Bells } from "../base/bells.ts";
import { Stage } from "./loop.ts";

const log = logger("outbox");
const MESSAGES_PER_ROUND = 50;
const ATTEMPTS_MAX = 10;
const RETRY: Backoff = { firstMs: 1_000, lastMs: 3_600_000, factor: 4 };

/** Delivers messages to other platforms. On the local platform a stored message is delivered already. */
export function createOutbox(
  options: { db: Database; clock: Clock; bells: Bells; platforms: readonly Platform[] },
): Stage {
  const { db, clock, bells } = options;
  const platforms = new Map(options.platforms.map((platform) => [platform.name, platform]));
  return new Stage({ name: "outbox", bell: BELL.outbox, clock, bells, step });

  async function step(): Promise<number> {
    const due = await listDueOutbound(db, clock.now(), MESSAGES_PER_ROUND);
    await Promise.all(due.map(deliver));
    // Whatever was tried is delivered or waits now, so this comes to an end.
    return due.length > 0 ? 0 : Infinity;
  }

  async function deliver(message: DueOutbound): Promise<void> {
    const attempt = message.attempt + 1;
    const keys = { session_key: message.session_key, message_id: message.message_id };
    try {
      const platform = platforms.get(message.platform);
      if (platform === undefined) throw new Error(`no platform called ${message.platform} is connected`);
      await platform.deliver({ ...message, media: JSON.parse(message.media) });
    } catch (error) {
      faultPoint("outbox.post");
      const reason = error instanceof Error ? error.message : String(error);
      const now = clock.now();
      const dueAt = attempt >= ATTEMPTS_MAX || !platforms.has(message.platform)
        ? null
        : now + backoffMs(RETRY, attempt);
      log.warning("Cannot deliver message {id}: {reason}", { id: message.id, reason });
      const undelivered: JournalEntry = {
        kind: "message.undelivered",
        ...keys,
        data: { outbound_id: message.id, reason, attempt },
      };
      await db.write(moved(deferOutbound(message.id, reason, dueAt), now, undelivered));
      return;
    }
    faultPoint("outbox.post");
    const now = clock.now();
    const sent: JournalEntry = { kind: "message.sent", ...keys, data: { outbound_id: message.id } };
    await db.write(moved(deliveredOutbound(message.id, now), now, sent));
  }
}
