import { z } from "zod";
import { absolutePath, readSecretFile } from "./file.ts";
import { EVENT_PATTERN, isWebhookKey } from "../domain/system/webhook.ts";

/** Keys whose value is a secret: each has a `<key>_file` beside it, and none is ever shown (contract 10). */
export const PLATFORM_SECRETS = ["secret", "token", "app_token", "bot_token", "app_secret", "client_secret"];

/** Most platforms, and most webhooks, that a configuration names. */
const PLATFORMS_MAX = 50;

const address = z.string().refine((text) => /^https?:$/.test(URL.parse(text)?.protocol ?? ""), {
  error: "must be an address such as https://example.org/hook",
});

// What every platform has (contract 10).
const common = {
  enabled: z.boolean().default(true),
  allow: z.array(z.union([z.string(), z.number()])).default([]),
  groups: z.enum(["mention", "all", "off"]).default("mention"),
  worker: z.string().default(""),
  base_url: z.union([z.literal(""), address]).default(""),
  threads: z.enum(["session", "chat"]).default("session"),
};

const whsec = z.string().refine((text) => text === "" || isWebhookKey(text), {
  error:
    "must be whsec_ and at least 24 bytes in base64; make one with: echo whsec_$(openssl rand -base64 32)",
});

const webhook = z.strictObject({
  ...common,
  kind: z.literal("webhook"),
  worker: z.string({ error: "is needed: the worker that gets what comes in" }).min(1),
  /** Of Standard Webhooks, and of what goes to reply_url; or, with hmac, the secret that is set there. */
  secret: z.string().default(""),
  hmac: z.enum(["", "github", "slack"]).default(""),
  template: z.string().default(""),
  conversation: z.string().min(1).max(500).default("main"),
  reply_url: z.union([z.literal(""), address]).default(""),
  allow_private: z.boolean().default(false),
}).refine(({ secret, hmac }) => hmac !== "" || secret === "" || isWebhookKey(secret), {
  path: ["secret"],
  error:
    "must be whsec_ and at least 24 bytes in base64; make one with: echo whsec_$(openssl rand -base64 32)",
}).refine(({ secret, hmac }) => hmac === "" || secret.length >= 8, {
  path: ["secret"],
  error: "is needed with hmac, and has at least 8 characters",
}).refine(({ secret, hmac, reply_url }) => reply_url === "" || secret !== "" && hmac === "", {
  path: ["reply_url"],
  error: "needs a secret that begins with whsec_, with which the replies are signed, and no hmac",
});

const telegram = z.strictObject({
  ...common,
  kind: z.literal("telegram"),
  token: z.string().default(""),
});

const slack = z.strictObject({
  ...common,
  kind: z.literal("slack"),
  app_token: z.string().default(""),
  bot_token: z.string().default(""),
});

const feishu = z.strictObject({
  ...common,
  kind: z.literal("feishu"),
  app_id: z.string().default(""),
  app_secret: z.string().default(""),
  /** Feishu and Lark are two services with one interface. */
  domain: z.enum(["feishu", "lark"]).default("feishu"),
});

const dingtalk = z.strictObject({
  ...common,
  kind: z.literal("dingtalk"),
  client_id: z.string().default(""),
  client_secret: z.string().default(""),
  robot_code: z.string().default(""),
  /** Made by hand in the card editor; buttons need one. */
  card_template: z.string().default(""),
  /** Of the older interface, which stores files; base_url when it is empty. */
  oapi_url: z.union([z.literal(""), address]).default(""),
});

const discord = z.strictObject({
  ...common,
  kind: z.literal("discord"),
  token: z.string().default(""),
});

const wecom = z.strictObject({
  ...common,
  kind: z.literal("wecom"),
  bot_id: z.string().default(""),
  secret: z.string().default(""),
});

/** One platform of the configuration (contract 10). */
const platformSchema = z.discriminatedUnion("kind", [
  webhook,
  telegram,
  slack,
  feishu,
  dingtalk,
  discord,
  wecom,
]);

export type PlatformConfig = z.output<typeof platformSchema>;
export type WebhookPlatformConfig = z.output<typeof webhook>;

/** `platforms:` (contract 10). */
export const platformsSchema = z.record(
  z.string().regex(/^(?!(?:local|cli)$)[a-z][a-z0-9_]{0,30}$/, {
    error: "a platform's name is lower-case letters, digits and _, at most 31, and not local or cli",
  }),
  platformSchema,
).refine((all) => Object.keys(all).length <= PLATFORMS_MAX, {
  error: `must be at most ${PLATFORMS_MAX} platforms`,
}).default({});

/** `webhooks:` (contract 11). */
export const webhooksSchema = z.array(z.strictObject({
  name: z.string().regex(/^[a-z][a-z0-9_-]{0,62}$/, {
    error: "must be lower-case letters, digits, _ and -, at most 63, and begin with a letter",
  }),
  url: address,
  secret: whsec.refine((text) => text !== "", { error: "is needed" }),
  events: z.array(
    z.string().regex(EVENT_PATTERN, { error: 'must look like task.* or execution.failed, or be "*"' }),
  )
    .min(1).max(100),
  enabled: z.boolean().default(true),
  allow_private: z.boolean().default(false),
})).max(PLATFORMS_MAX).refine((all) => new Set(all.map(({ name }) => name)).size === all.length, {
  error: "two of them have one name",
}).default([]);

/** Puts the text of each `<secret>_file` of a platform or webhook into its place. Throws ConfigError (contract 10). */
export function readSecretFiles(input: Record<string, unknown>, base: string): void {
  const lists = [input.platforms, input.webhooks].filter((list) => typeof list === "object" && list !== null);
  for (const entry of lists.flatMap((list) => Object.values(list as Record<string, unknown>))) {
    if (typeof entry !== "object" || entry === null) continue;
    const keys = entry as Record<string, unknown>;
    for (const key of PLATFORM_SECRETS) {
      const path = keys[`${key}_file`];
      if (typeof path !== "string") continue;
      keys[key] = readSecretFile(`${key}_file`, absolutePath(base, path));
      delete keys[`${key}_file`];
    }
  }
}
