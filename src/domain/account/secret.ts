import { z } from "zod";
import { id, ignoreFields, text, time } from "../call/field.ts";
import { buildPageQuery } from "../call/page.ts";

export const SECRET_NAME = /^[a-z][a-z0-9_-]{0,62}$/;

export const SECRET_NAME_ERROR =
  "must be at most 63 lower-case letters, digits, _ and -, and start with a letter";

const SECRET_VALUE_MAX_BYTES = 64 * 1024;

/** A rotation of the signing key rewrites all values in one batch, so their number and total size are limited. */
export const SECRETS_MAX = 1_000;
export const SECRETS_TOTAL_MAX_BYTES = 16 * 1024 * 1024;

/** Limit of the number of workers that may use one secret. */
const SECRET_WORKERS_MAX = 10_000;

const PREFIX = "secret:";

/** Returns the name in `secret:<name>`, or null for any other text. */
export function readSecretReference(value: string): string | null {
  return value.startsWith(PREFIX) ? value.slice(PREFIX.length) : null;
}

/** A secret without its value, which no response shows. */
export const secretSchema = z.strictObject({
  name: z.string().meta({ examples: ["github-token"] }),
  workers: z.array(id).meta({ description: "ids of the workers that may use it" }),
  lost: z.boolean().meta({ description: "whether another signing key encrypted it; set it again" }),
  used_by: z.array(z.string()).meta({
    description: "what names it: worker:<id>, platform:<name>, webhook:<name>, engine:<name>, telemetry",
  }),
  created_at: time,
  updated_at: time,
  last_used_at: time.nullable().meta({ description: "to the minute" }),
}).meta({ id: "Secret" });
export type Secret = z.output<typeof secretSchema>;

/** A field that the request omits stays unchanged. A new secret needs `value`, and without `workers` no worker may use it. */
export const secretPutSchema = z.strictObject({
  value: text(SECRET_VALUE_MAX_BYTES).refine((value) => value !== "", { error: "must not be empty" }),
  workers: z.array(id).max(SECRET_WORKERS_MAX),
  ...ignoreFields("name", "lost", "used_by", "created_at", "updated_at", "last_used_at"),
}).partial().meta({ id: "SecretPut", examples: [{ value: "the secret text", workers: [] }] });
export type SecretPut = z.output<typeof secretPutSchema>;

export const secretListQuery = buildPageQuery();
