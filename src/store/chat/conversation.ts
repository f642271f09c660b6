import {
  type Conversation,
  type ConversationFilter,
  conversationSchema,
  LATEST_TEXT_MAX,
} from "../../domain/chat/conversation.ts";
import type { Listing, Page } from "../../domain/call/page.ts";
import type { Database } from "../db/database.ts";
import { buildWhere, type Filters, limitToConversation, matchAny } from "../db/filter.ts";
import { list } from "../db/list.ts";
import { buildJsonSql } from "../db/json_projection.ts";
import { TASK_IS_ACTIVE } from "../db/status_sql.ts";

const SESSION = `chat_session
  where conversation.session_key like 'local:%' and chat_session.id = substr(conversation.session_key, 7)`;

function buildTextSql(table: string): string {
  return `(select substr(content, 1, ${LATEST_TEXT_MAX}) from ${table} where id = conversation.id)`;
}

const CONVERSATION_JSON = buildJsonSql("conversation", conversationSchema, {
  session_id: `(select id from ${SESSION})`,
  name: `coalesce((select name from ${SESSION}), '')`,
  worker_id: `(select worker_id from ${SESSION})`,
  text: `coalesce(
    case conversation.role when 'user' then ${buildTextSql("inbound_message")} when 'bee' then ${
    buildTextSql("outbound_message")
  } end,
    '')`,
  active_tasks: `(
    select count(*)
    from task
    where task.session_key = conversation.session_key and task.status ${TASK_IS_ACTIVE})`,
});

const FILTERS: Filters<ConversationFilter> = {
  session_key: matchAny("conversation.session_key"),
  platform: matchAny("conversation.platform"),
};

/** Lists conversations of all platforms, the latest message first (contract 17.6). */
export function listConversations(
  db: Database,
  filter: ConversationFilter,
  boundTo: string | null,
  page: Page,
): Promise<Listing<Conversation>> {
  const where = buildWhere(filter, FILTERS);
  limitToConversation(where, "conversation.session_key", boundTo);
  return list(db, { table: "conversation", json: CONVERSATION_JSON, where }, page);
}
