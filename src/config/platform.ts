import { z } from "zod";
import { absolutePath, readSecretFile } from "./file.ts";
import { EVENT_PATTERN, isWebhookKey } from "../domain/system/webhook.ts";

/** Secret keys, which are never shown. `<key>_file` reads one from a file. */
export const PLATFORM_SECRETS = ["secret", "token", "app_token", "bot_token", "app_secret", "client_secret"];

/** Limit of platforms, and limit of webhooks. */
const PLATFORMS_MAX = 50;

const address = z.string().refine((text) => /^https?:$/.test(URL.parse(text)?.protocol ?? ""), {
  error: "must be an address such as https://example.org/hook",
});

const WHSEC_ERROR =
  "must be whsec_ and at least 24 bytes in base64. Create one: echo whsec_$(openssl rand -base64 32)";

const common = {
  enabled: z.boolean().default(true),
  allow: z.array(z.union([z.string(), z.number()])).default([]),
  groups: z.enum(["mention", "all", "off"]).default("mention"),
  worker: z.string().default(""),
  base_url: z.union([z.literal(""), address]).default(""),
  threads: z.enum(["session", "chat"]).default("session"),
};

const whsec = z.string().refine((text) => text === "" || isWebhookKey(text), { error: WHSEC_ERROR });

const webhook = z.strictObject({
  ...common,
  kind: z.literal("webhook"),
  worker: z.string({ error: "is required: the worker for incoming messages" }).min(1),
  /** The key of Standard Webhooks, which also signs replies, or the sender's secret with `hmac`. */
  secret: z.string().default(""),
  hmac: z.enum(["", "github", "slack"]).default(""),
  template: z.string().default(""),
  conversation: z.string().min(1).max(500).default("main"),
  reply_url: z.union([z.literal(""), address]).default(""),
  allow_private: z.boolean().default(false),
}).refine(({ secret, hmac }) => hmac !== "" || secret === "" || isWebhookKey(secret), {
  path: ["secret"],
  error: WHSEC_ERROR,
}).refine(({ secret, hmac }) => hmac === "" || secret.length >= 8, {
  path: ["secret"],
  error: "is required with hmac: at least 8 characters",
}).refine(({ secret, hmac, reply_url }) => reply_url === "" || secret !== "" && hmac === "", {
  path: ["reply_url"],
  error: "requires a secret that starts with whsec_, which signs the replies, and no hmac",
});

const telegram = z.strictObject({ ...common, kind: z.literal("telegram"), token: z.string().default("") });

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
  domain: z.enum(["feishu", "lark"]).default("feishu"),
});

const dingtalk = z.strictObject({
  ...common,
  kind: z.literal("dingtalk"),
  client_id: z.string().default(""),
  client_secret: z.string().default(""),
  robot_code: z.string().default(""),
  /** Created in the card editor. Buttons require one. */
  card_template: z.string().default(""),
  /** Address of the older API, which stores files. Empty means base_url. */
  oapi_url: z.union([z.literal(""), address]).default(""),
});

const discord = z.strictObject({ ...common, kind: z.literal("discord"), token: z.string().default("") });

const wecom = z.strictObject({
  ...common,
  kind: z.literal("wecom"),
  bot_id: z.string().default(""),
  secret: z.string().default(""),
});

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

export const platformsSchema = z.record(
  z.string().regex(/^(?!(?:local|cli)$)[a-z][a-z0-9_]{0,30}$/, {
    error:
      "a platform's name must be lower-case letters, digits and _, at most 31 characters, and not local or cli",
  }),
  platformSchema,
).refine((all) => Object.keys(all).length <= PLATFORMS_MAX, {
  error: `must contain at most ${PLATFORMS_MAX} platforms`,
}).default({});

export const webhooksSchema = z.array(z.strictObject({
  name: z.string().regex(/^[a-z][a-z0-9_-]{0,62}$/, {
    error: "must be lower-case letters, digits, _ and -, at most 63 characters, and start with a letter",
  }),
  url: address,
  secret: whsec.refine((text) => text !== "", { error: "is required" }),
  events: z.array(
    z.string().regex(EVENT_PATTERN, { error: 'must look like task.* or execution.failed, or be "*"' }),
  )
    .min(1).max(100),
  enabled: z.boolean().default(true),
  allow_private: z.boolean().default(false),
})).max(PLATFORMS_MAX).refine((all) => new Set(all.map(({ name }) => name)).size === all.length, {
  error: "must not use a name twice",
}).default([]);

/** Reads each `<secret>_file` of platforms and webhooks into its key. Throws ConfigError. */
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
