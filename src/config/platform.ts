import { z } from "zod";
import { readSecretFile, resolveConfigPath } from "./file.ts";
import { readSecretReference } from "../domain/account/secret.ts";
import { EVENT_PATTERN, isWebhookKey } from "../domain/system/webhook.ts";
import { address, WEBHOOK_KEY_ERROR } from "../platform/manifest.ts";
import { MANIFESTS } from "../platform/registry.ts";

/**
 * Secret settings of platforms and webhooks, such as `token` or `imap.password`. Each has a `<key>_file` next to it, and the service
 * never shows one.
 */
export const PLATFORM_SECRETS = [...new Set(MANIFESTS.flatMap(({ secrets }) => secrets))];

/** Finds the object that has a secret, and its key there. Returns null when the entry has no such object. */
export function locateSecret(
  entry: object,
  secret: string,
): { holder: Record<string, unknown>; key: string } | null {
  const [key, group] = secret.split(".").toReversed();
  const holder = group === undefined ? entry : (entry as Record<string, unknown>)[group];
  if (key === undefined || typeof holder !== "object" || holder === null) return null;
  return { holder: holder as Record<string, unknown>, key };
}

/** Limit of the number of platforms, and of webhooks, in a configuration. */
const PLATFORMS_MAX = 50;

const platformSchema = z.discriminatedUnion("kind", listSettings(MANIFESTS));

type PlatformConfig = z.output<typeof platformSchema>;
export type WebhookPlatformConfig = Extract<PlatformConfig, { kind: "webhook" }>;

/** Lists the schemas of manifests as a tuple, from which zod infers the type of a configuration. */
function listSettings<const All extends readonly { settings: z.ZodType }[]>(manifests: All) {
  return manifests.map(({ settings }) => settings) as { [At in keyof All]: All[At]["settings"] };
}

export const platformsSchema = z.record(
  z.string().regex(/^(?!(?:local|cli|api)$)[a-z][a-z0-9_]{0,30}$/, {
    error:
      "the name of a platform must be at most 31 lower-case letters, digits and _, and not local, cli or api",
  }),
  platformSchema,
).refine((all) => Object.keys(all).length <= PLATFORMS_MAX, {
  error: `must contain at most ${PLATFORMS_MAX} platforms`,
}).default({});

export const webhooksSchema = z.array(z.strictObject({
  name: z.string().regex(/^[a-z][a-z0-9_-]{0,62}$/, {
    error: "must be at most 63 lower-case letters, digits, _ and -, and start with a letter",
  }),
  url: address,
  secret: z.string().refine((text) => isWebhookKey(text) || readSecretReference(text) !== null, {
    error: WEBHOOK_KEY_ERROR,
  }),
  events: z.array(
    z.string().regex(EVENT_PATTERN, { error: 'must look like task.* or execution.failed, or be "*"' }),
  )
    .min(1).max(100),
  enabled: z.boolean().default(true),
  allow_private: z.boolean().default(false),
})).max(PLATFORMS_MAX).refine((all) => new Set(all.map(({ name }) => name)).size === all.length, {
  error: "two webhooks have the same name",
}).default([]);

/** Replaces each `<secret>_file` of a platform or webhook with the text of the file. Throws ConfigError. */
export function readSecretFiles(input: Record<string, unknown>, base: string): void {
  for (const list of ["platforms", "webhooks"] as const) {
    for (const [name, entry] of Object.entries(input[list] ?? {})) {
      if (typeof entry !== "object" || entry === null) continue;
      const keys = entry as Record<string, unknown>;
      // The keys of a webhook include its name.
      const owner = `${list}.${list === "webhooks" && typeof keys.name === "string" ? keys.name : name}`;
      for (const secret of PLATFORM_SECRETS) {
        const { holder, key } = locateSecret(keys, secret) ?? { holder: {}, key: "" };
        const path = holder[`${key}_file`];
        if (typeof path !== "string") continue;
        holder[key] = readSecretFile(`${owner}.${secret}_file`, resolveConfigPath(base, path));
        delete holder[`${key}_file`];
      }
    }
  }
}
