import { ACCOUNT_SCHEMA } from "./schema_account.ts";
import { CHAT_SCHEMA } from "./schema_chat.ts";
import { PARENT_TRIGGERS } from "./schema_parents.ts";
import { SEARCH_SCHEMA } from "./schema_search.ts";
import { SYSTEM_SCHEMA } from "./schema_system.ts";
import { TRIGGERS } from "./schema_triggers.ts";
import { WORK_SCHEMA } from "./schema_work.ts";
import { WORKERS_SCHEMA } from "./schema_workers.ts";

/**
 * The statements of schema version 1. Times are Unix ms, ids UUIDv7, absent strings ''. CHECK constraints repeat the status
 * lists, so that an unknown status cannot be stored. Ids end at random, so the indexes *_ending find a row by its last 6 characters.
 */
export const SCHEMA: string[] = [
  ...SYSTEM_SCHEMA,
  ...ACCOUNT_SCHEMA,
  ...WORKERS_SCHEMA,
  ...CHAT_SCHEMA,
  ...WORK_SCHEMA,
  ...TRIGGERS,
  ...PARENT_TRIGGERS,
  ...SEARCH_SCHEMA,
];
