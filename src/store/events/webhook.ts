import { normalizeName } from "../../domain/call/name_key.ts";
import type { Listing, Page } from "../../domain/call/page.ts";
import {
  deliverySchema,
  type Webhook,
  type WebhookDelivery,
  type WebhookFilter,
  webhookSchema,
  type WebhookUpdate,
} from "../../domain/system/webhook.ts";
import { buildSet, type Database, guard, insertRow, type Statement, type Value } from "../db/database.ts";
import { buildWhere, type Filters, matchAny, matchReference, type Where } from "../db/filter.ts";
import { list, parseNullableJson } from "../db/list.ts";
import { buildJsonSql, readJson } from "../db/json_projection.ts";

const WEBHOOK_JSON = buildJsonSql("webhook", webhookSchema, {
  next_attempt_at: "webhook.due_at",
});
const DELIVERY_JSON = buildJsonSql("webhook_delivery", deliverySchema);

/** Most stored deliveries of one webhook. */
const DELIVERIES_MAX = 500;

const FILTERS: Filters<WebhookFilter> = {
  ref: matchReference("webhook", { column: "name_key", key: normalizeName }),
};

export function listWebhooks(db: Database, filter: WebhookFilter): Promise<Listing<Webhook>> {
  return list(db, { table: "webhook", json: WEBHOOK_JSON, where: buildWhere(filter, FILTERS) }, filter);
}

export async function findWebhook(db: Database, ref: string): Promise<Webhook | null> {
  const rest = "from webhook where id = ? or name_key = ?";
  return parseNullableJson(await readJson(db, WEBHOOK_JSON, rest, [ref.toLowerCase(), normalizeName(ref)]));
}

type NewWebhook =
  & Pick<Webhook, "id" | "name" | "url" | "enabled" | "origin">
  & { secret: string; events: readonly string[]; allow_private: boolean };

// A new webhook receives the events from now on.
const LAST_EVENT = "(select coalesce(max(seq), 0) from journal)";

function buildInsert(webhook: NewWebhook, now: number): { sql: string; args: Value[] } {
  const { id, name, url, secret, events, enabled, origin, allow_private } = webhook;
  const texts = [id, name, normalizeName(name), url, secret, JSON.stringify(events)];
  return {
    sql: `insert into webhook (id, name, name_key, url, secret, events, enabled, origin, allow_private,
        cursor, due_at, created_at, updated_at)
      select ?, ?, ?, ?, ?, ?, ?, ?, ?, ${LAST_EVENT}, ?, ?, ?`,
    args: [...texts, enabled, origin, allow_private, now, now, now],
  };
}

/** Stores a webhook, guarded by fewer than `max`. A duplicate name fails the batch. */
export function insertWebhook(webhook: NewWebhook, max: number, now: number): Statement[] {
  const { sql, args } = buildInsert(webhook, now);
  return guard(`${sql} where (select count(*) from webhook) < ?`, [...args, max]);
}

/** Creates, updates and deletes webhooks as configured. Webhooks that exist already keep their position in the journal. */
export function syncWebhooks(webhooks: readonly Omit<NewWebhook, "origin">[], now: number): Statement[] {
  return [
    {
      sql: `delete from webhook
        where origin = 'config' and name_key not in (select value from json_each(?))
          or origin = 'api' and name_key in (select value from json_each(?))`,
      args: Array(2).fill(JSON.stringify(webhooks.map(({ name }) => normalizeName(name)))),
    },
    ...webhooks.map((one) => {
      const { sql, args } = buildInsert({ ...one, origin: "config" }, now);
      return { sql: `${sql} ${ON_CONFLICT}`, args };
    }),
  ];
}

// SQLite requires the `where` between a select and its `on conflict`.
const ON_CONFLICT = `where true
  on conflict (name_key) do update set
    secret = excluded.secret,
    events = excluded.events,
    allow_private = excluded.allow_private,
    enabled = iif(disabled_reason <> '' and url = excluded.url, 0, excluded.enabled),
    disabled_reason = iif(url = excluded.url, disabled_reason, ''),
    url = excluded.url`;

interface WebhookChange extends WebhookUpdate {
  /** Differs from the current name only in case. */
  name?: string;
}

/** Changes the given fields, guarded by the webhook's existence, and retries pending events. Only `enabled` enables a disabled one. */
export function updateWebhook(id: string, change: WebhookChange, now: number): Statement[] {
  const { name, url, secret, enabled } = change;
  const events = change.events === undefined ? undefined : JSON.stringify(change.events);
  const disabled_reason = enabled === true ? "" : undefined;
  const columns = { name, url, secret, enabled, events, disabled_reason };
  const { sql, args } = buildSet({ ...columns, attempt: 0, due_at: now, updated_at: now });
  return guard(`update webhook set ${sql} where id = ?`, [...args, id]);
}

export function deleteWebhook(id: string): Statement[] {
  return guard("delete from webhook where id = ?", [id]);
}

/** Makes all events after the number `after` pending again. */
export function replayWebhook(id: string, after: number, now: number): Statement[] {
  return guard(
    `update webhook
    set cursor = min(?, ${LAST_EVENT}), attempt = 0, due_at = ?
    where id = ?`,
    [after, now, id],
  );
}

export interface DueWebhook
  extends Pick<Webhook, "id" | "name" | "url" | "cursor" | "attempt" | "updated_at"> {
  secret: string;
  /** JSON. */
  events: string;
  allow_private: number;
}

const DELIVERY_COLUMNS = "id, name, url, secret, events, allow_private, cursor, attempt, updated_at";

export function listDueWebhooks(db: Database, now: number): Promise<DueWebhook[]> {
  return db.read<DueWebhook>(
    `select ${DELIVERY_COLUMNS} from webhook where enabled = 1 and due_at <= ? order by due_at`,
    [now],
  );
}

/** Finds a webhook for a delivery, also a disabled one. */
export function findDueWebhook(db: Database, id: string): Promise<DueWebhook | null> {
  return db.first<DueWebhook>(`select ${DELIVERY_COLUMNS} from webhook where id = ?`, [id]);
}

/** The state of a webhook at the start of a delivery. A later change or replay overrides the result of the delivery. */
type WebhookVersion = Pick<DueWebhook, "id" | "cursor" | "updated_at">;

function updateUnchanged(
  { id, cursor, updated_at }: WebhookVersion,
  values: Record<string, Value>,
): Statement[] {
  const set = buildSet(values);
  return guard(
    `update webhook set ${set.sql} where id = ? and enabled = 1 and cursor = ? and updated_at = ?`,
    [...set.args, id, cursor, updated_at],
  );
}

/** Moves the cursor past delivered and unmatched events. Guarded by the webhook being unchanged. */
export function advanceWebhook(webhook: WebhookVersion, to: number, now: number): Statement[] {
  return updateUnchanged(webhook, { cursor: to, attempt: 0, due_at: now });
}

/** Schedules a retry. Guarded by the webhook being unchanged. */
export function postponeWebhook(webhook: WebhookVersion, attempt: number, dueAt: number): Statement[] {
  return updateUnchanged(webhook, { attempt, due_at: dueAt });
}

/** Disables a webhook after failures. Guarded by the webhook being unchanged. */
export function disableWebhook(webhook: WebhookVersion, reason: string, now: number): Statement[] {
  return updateUnchanged(webhook, { enabled: 0, disabled_reason: reason, updated_at: now });
}

/** Stores a delivery and deletes the oldest beyond DELIVERIES_MAX. */
export function insertDelivery(webhookId: string, delivery: WebhookDelivery): Statement[] {
  const { id, seq, kind, attempt, status, error, duration_ms, created_at } = delivery;
  return [
    insertRow(
      "webhook_delivery",
      { id, webhook_id: webhookId, seq, kind, attempt, status, error, duration_ms, created_at },
      { sql: "exists (select 1 from webhook where id = ?)", args: [webhookId] },
    ),
    {
      sql: `delete from webhook_delivery
        where webhook_id = ? and id <= (
          select id from webhook_delivery where webhook_id = ? order by id desc limit 1 offset ?)`,
      args: [webhookId, webhookId, DELIVERIES_MAX],
    },
  ];
}

export function listDeliveries(
  db: Database,
  webhookId: string,
  page: Page,
): Promise<Listing<WebhookDelivery>> {
  const where: Where = { conditions: [], args: [] };
  matchAny("webhook_delivery.webhook_id")(where, webhookId);
  return list(db, { table: "webhook_delivery", json: DELIVERY_JSON, where }, page);
}
