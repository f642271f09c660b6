// owed -> delivered (the cursor goes on), or owed again later, or the webhook is switched off
import { newId } from "../base/id.ts";
import { BELL, type Bells } from "../base/bells.ts";
import type { Clock } from "../base/clock.ts";
import { logger } from "../base/log.ts";
import { nameKey } from "../domain/name.ts";
import { TO_WEBHOOK } from "../domain/notice.ts";
import { kindsOf, RETRIES_MS } from "../domain/webhook.ts";
import { sendEvent, type Tried } from "../platform/webhook/event.ts";
import type { Database } from "../store/database.ts";
import { journalRange, type JournalRow, listEvents, moved } from "../store/journal.ts";
import {
  advanceWebhook,
  disableWebhook,
  type DueWebhook,
  insertDelivery,
  listDueWebhooks,
  postponeWebhook,
} from "../store/webhook.ts";
import { Stage } from "./loop.ts";

const log = logger("webhooks");
const EVENTS_PER_READ = 20;
// So far behind the journal the cursor of one that nothing concerns is stored.
const CURSOR_STEP = 1_000;
const JITTER = 0.1;

/**
 * Sends the events of the journal to the webhooks that want them: in order, at least once, from a cursor that survives restarts;
 * each webhook by itself (contract 11).
 */
export function createWebhookStage(
  { db, clock, bells }: { db: Database; clock: Clock; bells: Bells },
): Stage {
  const busy = new Set<string>();
  const stage = new Stage({ name: "webhooks", bell: BELL.journal, clock, bells, step });
  return stage;

  async function step(signal: AbortSignal): Promise<number> {
    for (const webhook of await listDueWebhooks(db, clock.now())) {
      if (busy.has(webhook.id)) continue;
      busy.add(webhook.id);
      // A receiver that is slow holds up nobody else.
      void serve(webhook, signal)
        .catch((error) => log.error("Cannot serve webhook {name}: {error}", { name: webhook.name, error }))
        .finally(() => busy.delete(webhook.id));
    }
    return Infinity;
  }

  async function serve(webhook: DueWebhook, signal: AbortSignal): Promise<void> {
    const wanted = kindsOf(JSON.parse(webhook.events));
    // Notices for it come whatever events it wants.
    const kinds = [...new Set([...wanted, "notice.raised" as const])];
    const { last } = await journalRange(db);
    const events = await listEvents(db, webhook.cursor, EVENTS_PER_READ, { kinds });
    let { cursor, attempt } = webhook;
    for (const event of events) {
      if (signal.aborted) return;
      if (!wanted.includes(event.kind) && !isNoticeFor(webhook, event)) continue;
      if (!await deliver({ ...webhook, cursor, attempt }, event)) return;
      cursor = event.seq;
      attempt = 0;
    }
    const seen = events.at(-1)?.seq ?? cursor;
    if (seen > cursor) await db.write(advanceWebhook(webhook.id, cursor, seen, clock.now()));
    if (events.length > 0) return stage.wake();
    if (last - cursor >= CURSOR_STEP) await db.write(advanceWebhook(webhook.id, cursor, last, clock.now()));
  }

  async function deliver(webhook: DueWebhook, event: JournalRow): Promise<boolean> {
    const target = { url: webhook.url, secret: webhook.secret, allow_private: webhook.allow_private === 1 };
    const tried = await sendEvent(target, eventOf(webhook.id, event), clock.now());
    const now = clock.now();
    const attempt = webhook.attempt + 1;
    const { status, error, duration_ms } = tried;
    const noted = insertDelivery(webhook.id, {
      id: newId(),
      seq: event.seq,
      kind: event.kind,
      attempt,
      status,
      error,
      duration_ms,
      created_at: now,
    });
    if (error === "") {
      const { won } = await db.write([
        ...advanceWebhook(webhook.id, webhook.cursor, event.seq, now),
        ...noted,
      ]);
      return won;
    }
    const reason = status === 410
      ? "its receiver answered 410: it is gone"
      : attempt > RETRIES_MS.length
      ? `event ${event.seq} was tried ${attempt} times: ${error}`
      : null;
    if (reason === null) {
      await db.write([postponeWebhook(webhook.id, attempt, now + waitMs(attempt, tried)), ...noted]);
    } else {
      const told = {
        kind: "webhook.disabled" as const,
        data: { webhook_id: webhook.id, name: webhook.name, reason },
      };
      log.warning("Webhook {name} is switched off: {reason}", { name: webhook.name, reason });
      await db.write([...moved(disableWebhook(webhook.id, reason, now), now, told), ...noted]);
    }
    return false;
  }
}

function isNoticeFor({ name }: DueWebhook, { kind, data }: JournalRow): boolean {
  if (kind !== "notice.raised") return false;
  const { to } = JSON.parse(data) as { to: string };
  return to.startsWith(TO_WEBHOOK) && nameKey(to.slice(TO_WEBHOOK.length)) === nameKey(name);
}

function waitMs(attempt: number, { retryAfterMs }: Tried): number {
  const ms = RETRIES_MS[attempt - 1] ?? 0;
  return Math.max(retryAfterMs ?? 0, Math.round(ms * (1 + JITTER * Math.random())));
}

function eventOf(webhookId: string, event: JournalRow) {
  const { seq, at, kind, session_key, worker_id, task_id, execution_id, message_id, actor, data } = event;
  return {
    id: `${webhookId}-${seq}`,
    kind,
    at,
    data: { seq, session_key, worker_id, task_id, execution_id, message_id, actor, data: JSON.parse(data) },
  };
}
