// Event of a webhook: due -> delivered (the cursor advances) or due again later. The last failure disables the webhook.
import { createId } from "../../base/id.ts";
import { WAKEUP } from "../../base/wakeups.ts";
import { createLogger } from "../../base/log.ts";
import { pickRunKeys } from "../../domain/call/run_identity.ts";
import { normalizeName } from "../../domain/call/name_key.ts";
import { TO_WEBHOOK } from "../../domain/system/notice.ts";
import { matchEventKinds, RETRIES_MS } from "../../domain/system/webhook.ts";
import { type DeliveryResult, sendEvent } from "../../platform/webhook_event.ts";
import type { SecretStore } from "../../store/account/secret_store.ts";
import type { Statement } from "../../store/db/database.ts";
import {
  type JournalRow,
  listEvents,
  readJournalRange,
  recordTransition,
} from "../../store/events/journal.ts";
import {
  advanceWebhook,
  disableWebhook,
  type DueWebhook,
  insertDelivery,
  listDueWebhooks,
  postponeWebhook,
} from "../../store/events/webhook.ts";
import { ASIDE_MS, Stage, type StageServices, waitBriefly } from "../stage/stage.ts";

const log = createLogger("webhooks");
const EVENTS_PER_READ = 20;
// A webhook without matching events stores its cursor only after it lags this many events behind.
const CURSOR_STEP = 1_000;
const JITTER = 0.1;

/**
 * Creates the stage that sends journal events to webhooks: in order and at least once, from a cursor that survives restarts. Webhooks do
 * not wait for each other (contract 11).
 */
export function createWebhookStage(
  services: StageServices,
  secrets: SecretStore,
): { stage: Stage; settled: () => Promise<void> } {
  const { db, clock } = services;
  const busy = new Map<string, Promise<void>>();
  const stage = new Stage(services, { name: "webhooks", wakeup: WAKEUP.journal, pauseMs: ASIDE_MS, step });
  return { stage, settled: () => waitBriefly([...busy.values()]) };

  async function step(signal: AbortSignal): Promise<number> {
    for (const webhook of await listDueWebhooks(db, clock.now())) {
      if (busy.has(webhook.id)) continue;
      // A slow receiver delays no other webhook.
      const serving = serve(webhook, signal)
        .catch((error) => {
          log.error("Cannot serve webhook {name}: {error}", { name: webhook.name, error });
          return false;
        })
        .then((again) => {
          busy.delete(webhook.id);
          if (again) stage.wake();
        });
      busy.set(webhook.id, serving);
    }
    return Infinity;
  }

  /** Sends the due events of a webhook. Returns whether to run another round immediately. */
  async function serve(webhook: DueWebhook, signal: AbortSignal): Promise<boolean> {
    const wanted = matchEventKinds(JSON.parse(webhook.events));
    // A webhook receives its notices whatever events it selects.
    const kinds = [...new Set([...wanted, "notice.raised" as const])];
    const { last } = await readJournalRange(db);
    const events = await listEvents(db, webhook.cursor, EVENTS_PER_READ, { kinds });
    let { cursor, attempt } = webhook;
    for (const event of events) {
      if (signal.aborted) return false;
      if (!wanted.includes(event.kind) && !isNoticeFor(webhook, event)) continue;
      const outcome = await deliver({ ...webhook, cursor, attempt }, event);
      if (outcome !== "taken") return outcome === "changed";
      cursor = event.seq;
      attempt = 0;
    }
    const lastRead = events.at(-1)?.seq ?? cursor;
    const at = { ...webhook, cursor };
    if (lastRead > cursor) await db.write(advanceWebhook(at, lastRead, clock.now()));
    if (events.length > 0) return true;
    if (last - cursor >= CURSOR_STEP) await db.write(advanceWebhook(at, last, clock.now()));
    return false;
  }

  /** Sends one event. `changed` means that a user changed the webhook meanwhile, and the change wins. */
  async function deliver(webhook: DueWebhook, event: JournalRow): Promise<"taken" | "later" | "changed"> {
    const target = {
      url: webhook.url,
      readSecret: () => secrets.resolve(webhook.secret),
      allow_private: webhook.allow_private === 1,
    };
    const result = await sendEvent(target, buildEvent(webhook.id, event), clock.now());
    const now = clock.now();
    const attempt = webhook.attempt + 1;
    const { status, error, duration_ms } = result;
    const delivery = insertDelivery(webhook.id, {
      id: createId(),
      seq: event.seq,
      kind: event.kind,
      attempt,
      status,
      error,
      duration_ms,
      created_at: now,
    });
    const store = async (statements: Statement[]) => {
      const { won } = await db.write([...statements, ...delivery]);
      // The delivery attempt is recorded even when the webhook was changed.
      if (!won) await db.write(delivery);
      return won;
    };
    if (error === "") return await store(advanceWebhook(webhook, event.seq, now)) ? "taken" : "changed";
    const reason = status === 410
      ? "its receiver answered 410 (gone)"
      : attempt > RETRIES_MS.length
      ? `event ${event.seq} failed ${attempt} times: ${error}`
      : null;
    if (reason === null) {
      const won = await store(postponeWebhook(webhook, attempt, now + computeWaitMs(attempt, result)));
      return won ? "later" : "changed";
    }
    const entry = {
      kind: "webhook.disabled" as const,
      data: { webhook_id: webhook.id, name: webhook.name, reason },
    };
    const won = await store(recordTransition(disableWebhook(webhook, reason, now), now, entry));
    if (won) log.warning("Webhook {name} was disabled: {reason}", { name: webhook.name, reason });
    return won ? "later" : "changed";
  }
}

function isNoticeFor({ name }: DueWebhook, { kind, data }: JournalRow): boolean {
  if (kind !== "notice.raised") return false;
  const { to } = JSON.parse(data) as { to: string };
  return to.startsWith(TO_WEBHOOK) && normalizeName(to.slice(TO_WEBHOOK.length)) === normalizeName(name);
}

function computeWaitMs(attempt: number, { retryAfterMs }: DeliveryResult): number {
  const ms = RETRIES_MS[attempt - 1] ?? 0;
  return Math.max(retryAfterMs ?? 0, Math.round(ms * (1 + JITTER * Math.random())));
}

function buildEvent(webhookId: string, event: JournalRow) {
  const { seq, at, kind, actor, data } = event;
  return {
    id: `${webhookId}-${seq}`,
    kind,
    at,
    data: { seq, ...pickRunKeys(event), actor, data: JSON.parse(data) },
  };
}
