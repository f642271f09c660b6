import { z } from "zod";
import { id, line, nameText, refFilter, text, time } from "../call/field.ts";
import { buildPageQuery } from "../call/page.ts";
import { EVENT_KINDS, type EventKind, WEBHOOK_ORIGINS } from "../call/vocabulary.ts";

/** A kind of event or a prefix: `task.*`, `execution.failed`, `*` (contract 11). */
export const EVENT_PATTERN = /^(\*|[a-z]+\.\*|[a-z]+\.[a-z_]+)$/;

export const WEBHOOKS_MAX = 100;

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

/** Delays between attempts for one event. After the last one the service disables the webhook (contract 11). */
export const RETRIES_MS: readonly number[] = [
  5_000,
  5 * MINUTE_MS,
  30 * MINUTE_MS,
  ...[2, 5, 10, 14, 20, 24].map((hours) => hours * HOUR_MS),
];

const SECRET_ERROR = "must be whsec_ and at least 24 bytes in base64; omit it to generate one";
const NOTHING_MATCHES = "matches no kind of event; GET /api/events shows them";

const secret = text(500).refine((value) => isWebhookKey(value), { error: SECRET_ERROR });
const url = line(2_000).refine((value) => /^https?:$/.test(URL.parse(value)?.protocol ?? ""), {
  error: "must be an address such as https://example.org/hook",
}).refine((value) => !URL.parse(value)?.username && !URL.parse(value)?.password, {
  error: "must not contain a user name or a password",
});
const events = z.array(
  line(100).regex(EVENT_PATTERN, { error: 'must look like task.* or execution.failed, or be "*"' })
    .refine((pattern) => matchEventKinds([pattern]).length > 0, { error: NOTHING_MATCHES }),
).min(1, { error: "must name at least one kind" }).max(100);

/** Returns whether a text is a secret of Standard Webhooks. */
export function isWebhookKey(value: string): boolean {
  const [, key = ""] = /^whsec_([A-Za-z0-9+/]+=*)$/.exec(value) ?? [];
  return Math.floor(key.replace(/=+$/, "").length * 3 / 4) >= 24;
}

export function matchEventKinds(patterns: readonly string[]): EventKind[] {
  return EVENT_KINDS.filter((kind) =>
    patterns.some((pattern) =>
      pattern === "*" || pattern === kind || pattern.endsWith(".*") && kind.startsWith(pattern.slice(0, -1))
    )
  );
}

/** A webhook without its secret. */
export const webhookSchema = z.strictObject({
  id,
  name: z.string(),
  url: z.string(),
  events: z.array(z.string()),
  enabled: z.boolean(),
  origin: z.enum(WEBHOOK_ORIGINS),
  disabled_reason: z.string().meta({ description: "why the service disabled it; else empty" }),
  cursor: z.int().meta({ description: "every event up to this number was delivered" }),
  attempt: z.int().meta({ description: "delivery attempts of the next event" }),
  next_attempt_at: time,
  created_at: time,
  updated_at: time,
}).meta({ id: "Webhook" });
export type Webhook = z.output<typeof webhookSchema>;

/** Includes the secret, which no other response shows. */
export const webhookCreatedSchema = webhookSchema.extend({ secret: z.string() }).meta({
  id: "WebhookCreated",
});
export type CreatedWebhook = z.output<typeof webhookCreatedSchema>;

export const webhookCreateSchema = z.strictObject({
  name: nameText(),
  url,
  events,
  secret: secret.optional().meta({ description: "default: generated and shown once" }),
  enabled: z.boolean().default(true),
}).meta({
  id: "WebhookCreate",
  examples: [{ name: "ci", url: "https://example.org/hook", events: ["execution.failed", "task.*"] }],
});
export type WebhookCreate = z.output<typeof webhookCreateSchema>;

export const webhookUpdateSchema = z.strictObject({ url, events, secret, enabled: z.boolean() }).partial()
  .meta({
    id: "WebhookUpdate",
    examples: [{ enabled: true }],
  });
export type WebhookUpdate = z.output<typeof webhookUpdateSchema>;

export const deliverySchema = z.strictObject({
  id,
  seq: z.int().meta({ description: "the number of the event; 0 for a test" }),
  kind: z.string(),
  attempt: z.int(),
  status: z.int().meta({ description: "HTTP status of the response; 0 without one" }),
  error: z.string(),
  duration_ms: z.int(),
  created_at: time,
}).meta({ id: "WebhookDelivery" });
export type WebhookDelivery = z.output<typeof deliverySchema>;

export const webhookListQuery = { ref: refFilter.optional(), ...buildPageQuery() };
export type WebhookFilter = z.output<z.ZodObject<typeof webhookListQuery>>;
export const deliveryListQuery = buildPageQuery();

export const replaySchema = z.strictObject({
  after: z.int().min(0).meta({ description: "delivers every event after this number again" }),
}).meta({ id: "WebhookReplay", examples: [{ after: 1200 }] });
export type Replay = z.output<typeof replaySchema>;
