// Gathers the coordinator's prompt context for one message: people, memory, and earlier conversation.
import type { Config } from "../../config/schema.ts";
import type { BeeContext } from "../../domain/chat/bee_prompt.ts";
import type { Media } from "../../domain/chat/message.ts";
import { CONVERSATION_MAX_MESSAGES, type ConversationEntry } from "../../domain/chat/prompt.ts";
import type { Candidate } from "../../domain/chat/routing.ts";
import { getCtlPath } from "../../base/paths.ts";
import type { Database } from "../../store/db/database.ts";
import { listDepartments } from "../../store/workers/department.ts";
import { listHistory } from "../../store/chat/history.ts";
import { findMemoryMap } from "../../store/workers/memory.ts";
import type { EngineRunOptions } from "./engine_run.ts";

/** A message with its parts, which may be several merged messages. */
export interface BeeMessage {
  id: string;
  session_key: string;
  text: string;
  parts: readonly MessagePart[];
}

interface MessagePart {
  id: string;
  media: Media | null;
}

interface BeeBriefingOptions extends Pick<EngineRunOptions, "paths"> {
  config: Config;
  db: Database;
  timeZone: string;
}

/** Gathers the prompt context of one message (contract 4.4). */
export async function buildBeeContext(
  { db, config, timeZone, paths }: BeeBriefingOptions,
  { id, session_key, text, parts }: BeeMessage,
  workers: Candidate[],
  now: number,
): Promise<BeeContext> {
  const maxBytes = config.limits.max_prompt_bytes;
  const [departments, global, session, history] = await Promise.all([
    listDepartments(db),
    findMemoryMap(db, "global", maxBytes / 4),
    findMemoryMap(db, session_key, maxBytes / 4),
    listHistory(db, session_key, { limit: CONVERSATION_MAX_MESSAGES, before: id, maxBytes }),
  ]);
  const names = new Map(departments.map((one) => [one.id, one.name]));
  return {
    persona: config.bee.persona,
    now,
    timeZone,
    workers,
    departments: departments.map(({ name, parent_id }) => ({
      name,
      parent: names.get(parent_id ?? "") ?? "",
    })),
    memory: { global: global.entries, session: session.entries },
    conversation: pickEarlier(history, parts),
    message: {
      id,
      session_key,
      text,
      attachments: parts.map((part) => part.media).filter((media): media is Media => media !== null),
    },
    ctl: getCtlPath(paths),
  };
}

// Merged messages are part of this text, not of the earlier conversation.
function pickEarlier(history: string[], parts: readonly MessagePart[]): ConversationEntry[] {
  const own = new Set(parts.map((part) => part.id));
  return history.map((json) => JSON.parse(json) as ConversationEntry & { id: string })
    .filter(({ id }) => !own.has(id))
    .map(({ role, content, ts }) => ({ role, content, ts }));
}
