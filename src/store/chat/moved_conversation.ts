import { formatPlaceFolder } from "../../domain/chat/platform.ts";
import type { Statement } from "../db/database.ts";
import { WAKEUP } from "../../base/wakeups.ts";
import { moveUse } from "../workers/budget_ledger.ts";

/** Tables with any number of rows per conversation, and their columns that contain a session key. */
const COLUMNS: readonly [string, string][] = [
  ["inbound_message", "session_key"],
  ["outbound_message", "session_key"],
  ["bee_run", "session_key"],
  ["question", "session_key"],
  ["steer", "session_key"],
  ["task", "session_key"],
  ["task", "deliver_to"],
  ["execution", "session_key"],
  ["journal", "session_key"],
];

/**
 * Tables with at most one row for a conversation and the rest of a unique key. If the new conversation has such a row already, that row
 * stays.
 */
const KEYS: readonly [string, string][] = [
  ["session_context", "session_key"],
  ["approval", "session_key"],
  ["memory", "scope"],
  ["notice", "place"],
];

/**
 * Gives all rows of a conversation a new session key: messages, open replies, tasks, schedules, questions, memory and engine sessions. The
 * messages keep their ids, because the new chat numbers its messages anew.
 */
export function moveConversation(from: string, to: string): Statement[] {
  return [
    // The bot can't edit messages of the old chat from the new one, whose own messages may have the same ids.
    {
      sql: `update outbound_part set sent_as = ''
        where sent_as <> '' and outbound_id in (select id from outbound_message where session_key = ?)`,
      args: [from],
    },
    { sql: "delete from platform_progress where session_key = ?", args: [from] },
    ...COLUMNS.map(([table, column]) => ({
      sql: `update ${table} set ${column} = ? where ${column} = ?`,
      args: [to, from],
      wakeup: WAKEUP.outbox,
    })),
    ...KEYS.flatMap(([table, column]) => [
      { sql: `update or ignore ${table} set ${column} = ? where ${column} = ?`, args: [to, from] },
      { sql: `delete from ${table} where ${column} = ?`, args: [from] },
    ]),
    // A worker may have a worktree for the new conversation already.
    {
      sql: "update or ignore tree set lane = ? where lane = ?",
      args: [`session:${to}`, `session:${from}`],
    },
    ...moveUse(`session:${from}`, `session:${to}`),
    { sql: "update budget set target = ? where target = ?", args: [`session:${to}`, `session:${from}`] },
    {
      sql: `update reservation set targets = (
          select json_group_array(iif(value = ?, ?, value)) from json_each(reservation.targets))
        where exists (select 1 from json_each(reservation.targets) where value = ?)`,
      args: [`session:${from}`, `session:${to}`, `session:${from}`],
    },
    {
      sql: "update upload set session_id = ? where session_id = ?",
      args: [formatPlaceFolder(to), formatPlaceFolder(from)],
    },
    {
      sql: `insert into conversation (session_key, platform, id, role, updated_at)
        select ?, platform, id, role, updated_at from conversation where session_key = ?
        on conflict (session_key) do update set
          id = excluded.id, role = excluded.role, updated_at = excluded.updated_at
          where excluded.id > conversation.id`,
      args: [to, from],
    },
    { sql: "delete from conversation where session_key = ?", args: [from] },
  ];
}
