import { z } from "zod";
import { DURATION, formatDuration, parseDurationMs } from "../base/duration.ts";

const DURATION_ERROR = "must be a duration such as 300ms, 30s, 5m, 2h or 7d";

/** Builds the schema of a duration such as `300ms`, `5m` or `7d`, stored in ms. */
export function buildDurationSchema(fallback: string, minMs = 0) {
  const decode = (text: string) => parseDurationMs(text) ?? NaN;
  return z.codec(
    z.string({ error: DURATION_ERROR }).regex(DURATION, { error: DURATION_ERROR }),
    z.number().min(minMs, { error: `must be at least ${formatDuration(minMs)}` }),
    { decode, encode: formatDuration },
  ).default(decode(fallback));
}

const SHARE_ERROR = "must be a share such as 20%";

/** Builds the schema of a percentage such as `20%`, stored as a fraction. */
export function buildShareSchema(fallback: string) {
  const decode = (text: string) => Number(text.slice(0, -1)) / 100;
  return z.codec(
    z.string({ error: SHARE_ERROR }).regex(/^\d{1,2}(\.\d+)?%$/, { error: SHARE_ERROR }),
    z.number(),
    { decode, encode: (part) => `${Number((part * 100).toFixed(6))}%` },
  ).default(decode(fallback));
}

/** US dollars per million tokens. */
export const priceSchema = z.number({ error: "must be a number of US dollars per million tokens" }).min(0)
  .max(
    1_000_000,
  );

export function buildCountSchema(fallback: number, min: number, max: number) {
  return z.int({ error: "must be a whole number" }).check(
    z.gte(min, { error: `must be at least ${min}` }),
    z.lte(max, { error: `must be at most ${max}` }),
  ).default(fallback);
}
