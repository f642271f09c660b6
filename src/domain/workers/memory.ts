import { z } from "zod";
import {
  CONTENT_MAX_BYTES,
  KEY_MAX_BYTES,
  line,
  sessionKey,
  text,
  textFilter,
  time,
  truncated,
} from "../call/field.ts";
import { PROTOTYPE_KEY } from "../call/json.ts";
import { buildPageQuery } from "../call/page.ts";

/** The scope that all conversations share. Any other scope is a session key. */
export const GLOBAL_SCOPE = "global";

/** Limit of the number of entries per scope, because prompts contain all of them. */
export const MEMORY_ENTRIES_MAX = 1_000;

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

/** A cursor is the last key of the previous page. */
export const memoryListQuery = {
  scope,
  text: textFilter.optional().meta({ description: "text in the key or the value" }),
  ...buildPageQuery(),
  cursor: key.optional(),
};
export type MemoryFilter = z.output<z.ZodObject<typeof memoryListQuery>>;

export const memoryEntryQuery = { scope, key };

// In a fleet file, memory is an object by key.
const savedKey = key.refine((name) => name !== PROTOTYPE_KEY, { error: `${PROTOTYPE_KEY} is not a key` });

export const memorySaveSchema = z.strictObject({ scope, key: savedKey, value: text(CONTENT_MAX_BYTES) })
  .meta({ id: "MemorySave", examples: [{ scope: "global", key: "tone", value: "friendly, short" }] });
export type MemorySave = z.output<typeof memorySaveSchema>;
