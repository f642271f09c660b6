import { z } from "zod";
import { load } from "../../base/lazy_import.ts";
import { readSecretReference } from "../../domain/account/secret.ts";
import { isWebhookKey } from "../../domain/system/webhook.ts";
import { FORGES } from "../../domain/call/vocabulary.ts";
import { commonSettings, defineManifest, optionalAddress, WEBHOOK_KEY_ERROR } from "../manifest.ts";

const ROUNDS_MAX = 100;

const settings = z.strictObject({
  ...commonSettings,
  kind: z.literal("webhook"),
  worker: z.string({ error: "is missing: the worker that gets the messages" }).min(1),
  /** Key of Standard Webhooks, also for `reply_url`. With `hmac`: the secret that the sender has. */
  secret: z.string().default(""),
  hmac: z.enum(["", "github", "slack"]).default(""),
  /** A forge, whose events the service reads itself. */
  preset: z.enum(["", ...FORGES]).default(""),
  /** With `preset`: the gateway of kind http for comments. */
  gateway: z.string().default(""),
  /** With `preset`: how often failed checks and reviews of a branch go back to its agent. */
  rounds: z.int().min(0).max(ROUNDS_MAX).default(3),
  template: z.string().default(""),
  conversation: z.string().min(1).max(500).default("main"),
  reply_url: optionalAddress,
  allow_private: z.boolean().default(false),
}).refine(
  ({ secret, hmac, preset }) =>
    hmac !== "" || preset !== "" || secret === "" || isWebhookKey(secret) ||
    readSecretReference(secret) !== null,
  {
    path: ["secret"],
    error: WEBHOOK_KEY_ERROR,
  },
).refine(({ secret, hmac, preset }) => hmac === "" && preset === "" || secret.length >= 8, {
  path: ["secret"],
  error: "must have at least 8 characters with hmac or preset",
}).refine(({ secret, hmac, reply_url }) => reply_url === "" || secret !== "" && hmac === "", {
  path: ["reply_url"],
  error: "needs a whsec_ secret, which signs the replies, and no hmac",
}).refine(({ preset, gateway }) => preset !== "" || gateway === "", {
  path: ["gateway"],
  error: "needs a preset",
}).refine(({ preset, hmac, template, reply_url }) => preset === "" || hmac + template + reply_url === "", {
  path: ["preset"],
  error: "cannot be combined with hmac, template or reply_url",
}).refine(({ preset, allow }) => preset === "" || allow.every((id) => /^\d+$/.test(String(id))), {
  path: ["allow"],
  error: "must have the numbers of accounts, because names can change",
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
