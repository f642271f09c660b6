import { z } from "zod";
import { CONTENT_MAX_BYTES, KEY_MAX_BYTES, line, sessionKey, text, time, truncated } from "../call/field.ts";
import { pageQuery } from "../call/page.ts";

/** The scope that every conversation shares; any other scope is a session key (interface 2, Memory entry). */
export const GLOBAL_SCOPE = "global";

/** Most entries of one scope: all of them go into prompts. */
export const MEMORY_ENTRIES_MAX = 1_000;

/** A memory entry (interface 2, Memory entry; contract 3, Memory). */
export const memorySchema = z.strictObject({
  scope: z.string(),
  key: z.string(),
  value: z.string(),
  updated_at: time,
  truncated,
}).meta({ id: "MemoryEntry" });

export type MemoryEntry = z.output<typeof memorySchema>;

const scope = sessionKey.meta({ description: "`global` or a session key" });
const key = line(KEY_MAX_BYTES);

/** Query of GET /api/memory; a cursor is the last key of the page before. */
export const memoryListQuery = { scope, ...pageQuery(), cursor: key.optional() };

/** Query that names one entry. */
export const memoryEntryQuery = { scope, key };

/** Body of PUT /api/memory/entry (interface 4.2, memory save). */
export const memorySaveSchema = z.strictObject({ scope, key, value: text(CONTENT_MAX_BYTES) })
  .meta({ id: "MemorySave", examples: [{ scope: "global", key: "tone", value: "friendly, short" }] });

export type MemorySave = z.output<typeof memorySaveSchema>;
