import { randomBytes } from "node:crypto";
import { createId } from "../../base/id.ts";
import { conflict, notFound } from "../../domain/call/error.ts";
import { formatJson, parseJson } from "../../domain/call/json.ts";
import type { Page } from "../../domain/call/page.ts";
import { mayCall } from "../../domain/call/scope.ts";
import {
  type CreatedWebhook,
  type Replay,
  type Webhook,
  type WebhookCreate,
  type WebhookDelivery,
  type WebhookFilter,
  WEBHOOKS_MAX,
  type WebhookUpdate,
} from "../../domain/system/webhook.ts";
import { sendEvent } from "../../platform/webhook_event.ts";
import { readJournalRange } from "../../store/events/journal.ts";
import {
  deleteWebhook as deleteWebhookRow,
  findDueWebhook,
  findWebhook,
  insertDelivery,
  insertWebhook,
  listDeliveries as listDeliveryRows,
  listWebhooks as listWebhookRows,
  replayWebhook as replayWebhookRow,
  updateWebhook as updateWebhookRow,
} from "../../store/events/webhook.ts";
import { type Answer, answer, answerPage, DELETED, requireFound } from "../call/answer.ts";
import { type Call, recordBy } from "../call/call.ts";
import type { Creation } from "../call/idempotency.ts";
import type { Deps } from "../call/services.ts";

const SECRET_BYTES = 32;

export async function listWebhooks(
  { db }: Deps<"db">,
  call: Call,
  paging: WebhookFilter,
): Promise<Answer<Webhook[]>> {
  const found = answerPage(await listWebhookRows(db, paging));
  if (seesAddresses(call)) return found;
  return { ...found, json: formatJson(parseJson(found.json).map(hidePath)) };
}

// Paths and queries of webhooks are often secrets, so only callers who can set webhooks see them.
function seesAddresses({ caller }: Call): boolean {
  return mayCall(caller, "write:webhooks");
}

function hidePath(webhook: Webhook): Webhook {
  return { ...webhook, url: getOrigin(webhook.url) };
}

export async function getWebhook({ db }: Deps<"db">, call: Call, ref: string): Promise<Answer<Webhook>> {
  const webhook = await requireWebhook({ db }, ref);
  return answer(seesAddresses(call) ? webhook : hidePath(webhook));
}

async function requireWebhook({ db }: Deps<"db">, ref: string): Promise<Webhook> {
  return requireFound(await findWebhook(db, ref), "webhook", ref);
}

/** Creates a webhook. Only this answer shows the secret. Throws `conflict` for a taken name or too many webhooks. */
export async function planWebhook(
  { db, clock }: Deps<"db" | "clock">,
  call: Call,
  input: WebhookCreate,
): Promise<Creation<CreatedWebhook>> {
  const secret = input.secret ?? generateWebhookSecret();
  const now = clock.now();
  const { name, url, events, enabled } = input;
  const webhook = { id: createId(), name, url, events, enabled, origin: "api" as const };
  const { last } = await readJournalRange(db);
  return {
    statements: [
      ...insertWebhook({ ...webhook, secret, allow_private: false }, WEBHOOKS_MAX, now),
      recordBy(call, now, {
        kind: "webhook.created",
        data: { webhook_id: webhook.id, name, url: getOrigin(url), events },
      }),
    ],
    response: {
      ...webhook,
      disabled_reason: "",
      cursor: last,
      attempt: 0,
      next_attempt_at: now,
      created_at: now,
      updated_at: now,
      secret,
    },
    lost: () => conflict(`Cannot create the webhook: ${WEBHOOKS_MAX} webhooks exist. Delete some first.`),
    duplicate: () =>
      conflict(`Cannot name a webhook ${JSON.stringify(input.name)}: another webhook has this name`),
  };
}

/** Generates a secret of Standard Webhooks. */
export function generateWebhookSecret(): string {
  return `whsec_${randomBytes(SECRET_BYTES).toString("base64")}`;
}

/** Returns the origin of an address. Paths are often secrets, so the journal omits them. */
export function getOrigin(url: string): string {
  return new URL(url).origin;
}

/** Updates a webhook. A configured webhook only takes `enabled`, which switches it on again. Throws `not_found` or `conflict`. */
export async function updateWebhook(
  { db, clock }: Deps<"db" | "clock">,
  call: Call,
  ref: string,
  input: WebhookUpdate,
): Promise<Answer<Webhook>> {
  const { id, name, origin } = await requireWebhook({ db }, ref);
  if (origin === "config" && Object.keys(input).some((key) => key !== "enabled")) {
    throw conflict(
      "Cannot change this webhook: the configuration defines it. Change it there and restart the service.",
    );
  }
  const now = clock.now();
  await db.writeOr([
    ...updateWebhookRow(id, input, now),
    recordBy(call, now, {
      kind: "webhook.updated",
      data: { webhook_id: id, name, changed: Object.keys(input) },
    }),
  ], () => notFound("webhook", ref));
  return answer(await requireWebhook({ db }, id));
}

/** Deletes a webhook. Throws `not_found`, or `conflict` for a configured webhook. */
export async function deleteWebhook({ db, clock }: Deps<"db" | "clock">, call: Call, ref: string) {
  const { id, name, origin } = await requireWebhook({ db }, ref);
  if (origin === "config") {
    throw conflict(
      "Cannot delete this webhook: the configuration defines it. Remove it there and restart the service.",
    );
  }
  await db.writeOr([
    ...deleteWebhookRow(id),
    recordBy(call, clock.now(), { kind: "webhook.deleted", data: { webhook_id: id, name } }),
  ], () => notFound("webhook", ref));
  return DELETED;
}

/** Sends an event `webhook.tested` immediately and returns the delivery. Throws `not_found`. */
export async function testWebhook(
  { db, clock, secrets }: Deps<"db" | "clock" | "secrets">,
  call: Call,
  ref: string,
): Promise<Answer<WebhookDelivery>> {
  const { id, name } = await requireWebhook({ db }, ref);
  const webhook = requireFound(await findDueWebhook(db, id), "webhook", ref);
  const now = clock.now();
  const kind = "webhook.tested";
  const { url, secret, allow_private } = webhook;
  const event = { id: `${id}-test-${createId()}`, kind, at: now, data: { name } };
  const { status, error, duration_ms } = await sendEvent(
    { url, readSecret: () => secrets.resolve(secret), allow_private: allow_private === 1 },
    event,
    now,
  );
  const delivery = { id: createId(), seq: 0, kind, attempt: 1, status, error, duration_ms, created_at: now };
  await db.write([
    ...insertDelivery(id, delivery),
    recordBy(call, now, { kind, data: { webhook_id: id, name, status } }),
  ]);
  return answer(delivery);
}

/** Lists all delivery attempts, newest first. Throws `not_found`. */
export async function listDeliveries({ db }: Deps<"db">, ref: string, paging: Page) {
  const { id } = await requireWebhook({ db }, ref);
  return answerPage(await listDeliveryRows(db, id, paging));
}

/** Delivers all events after `after` again, with the same ids. Throws `not_found`. */
export async function replayWebhook(
  { db, clock }: Deps<"db" | "clock">,
  call: Call,
  ref: string,
  { after }: Replay,
): Promise<Answer<Webhook>> {
  const { id, name } = await requireWebhook({ db }, ref);
  const now = clock.now();
  await db.writeOr([
    ...replayWebhookRow(id, after, now),
    recordBy(call, now, { kind: "webhook.replayed", data: { webhook_id: id, name, after } }),
  ], () => notFound("webhook", ref));
  return answer(await requireWebhook({ db }, id));
}
