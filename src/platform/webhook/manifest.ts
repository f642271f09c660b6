import { z } from "zod";
import { load } from "../../base/lazy_import.ts";
import { readSecretReference } from "../../domain/account/secret.ts";
import { isWebhookKey } from "../../domain/system/webhook.ts";
import { commonSettings, defineManifest, optionalAddress, WEBHOOK_KEY_ERROR } from "../manifest.ts";

const settings = z.strictObject({
  ...commonSettings,
  kind: z.literal("webhook"),
  worker: z.string({ error: "is missing: the worker that gets the messages" }).min(1),
  /** Key of Standard Webhooks, also for `reply_url`. With `hmac`: the secret that the sender has. */
  secret: z.string().default(""),
  hmac: z.enum(["", "github", "slack"]).default(""),
  template: z.string().default(""),
  conversation: z.string().min(1).max(500).default("main"),
  reply_url: optionalAddress,
  allow_private: z.boolean().default(false),
}).refine(
  ({ secret, hmac }) =>
    hmac !== "" || secret === "" || isWebhookKey(secret) || readSecretReference(secret) !== null,
  {
    path: ["secret"],
    error: WEBHOOK_KEY_ERROR,
  },
).refine(({ secret, hmac }) => hmac === "" || secret.length >= 8, {
  path: ["secret"],
  error: "must have at least 8 characters with hmac",
}).refine(({ secret, hmac, reply_url }) => reply_url === "" || secret !== "" && hmac === "", {
  path: ["reply_url"],
  error: "needs a whsec_ secret, which signs the replies, and no hmac",
});

export const WEBHOOK = defineManifest({
  kind: "webhook",
  settings,
  secrets: ["secret"],
  guide: {
    title: "Webhook: messages from your programs",
    steps: ["Create a secret for the sender: echo whsec_$(openssl rand -base64 32)"],
    lines: [
      "alerts:",
      "  kind: webhook",
      "  secret_file: /etc/svc/alerts.secret",
      "  worker: Ada   # gets all messages",
    ],
  },
  limits: null,
  async load() {
    const { createWebhook } = await load<typeof import("./webhook.ts")>("./webhook.ts", import.meta.url);
    return createWebhook;
  },
});
