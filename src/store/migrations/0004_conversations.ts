/**
 * One row for each conversation, of whatever platform, so that they can be listed by their latest message without reading
 * messages (contract 17.6, decision 0015). `id` is the latest message's, or, before the first, the local session's own.
 */
export const CONVERSATIONS: string[] = [
  `create table conversation (
    session_key text primary key,
    platform text not null,
    id text not null,
    role text not null check (role in ('', 'user', 'bee')),
    updated_at integer not null
  ) strict, without rowid`,
  `create index conversation_latest on conversation (id)`,
  `create index conversation_platform on conversation (platform, id)`,
  // What was sent is counted without its rows: their state stands behind their text, which would be read page by page.
  `create index outbound_history on outbound_message (session_key, id) where status = 'sent'`,

  `insert into conversation (session_key, platform, id, role, updated_at)
    select session_key, platform, max(id), role, at
    from (
      select 'local:' || id as session_key, 'local' as platform, id, '' as role, created_at as at from chat_session
      union all
      select session_key, platform, id, 'user', received_at from inbound_message
      union all
      select session_key, platform, id, 'bee', created_at from outbound_message)
    where session_key <> ''
    group by session_key`,

  ...latest("inbound_message", "user", "received_at"),
  ...latest("outbound_message", "bee", "created_at"),
  `create trigger chat_session_conversation_in after insert on chat_session begin
    insert into conversation (session_key, platform, id, role, updated_at)
    values ('local:' || new.id, 'local', new.id, '', new.created_at)
    on conflict (session_key) do nothing;
  end`,
  `create trigger chat_session_conversation_out after delete on chat_session begin
    delete from conversation where session_key = 'local:' || old.id;
  end`,
];

function latest(table: string, role: string, time: string): string[] {
  return [
    `create trigger ${table}_conversation_in after insert on ${table} when new.session_key <> '' begin
      insert into conversation (session_key, platform, id, role, updated_at)
      values (new.session_key, new.platform, new.id, '${role}', new.${time})
      on conflict (session_key) do update set
        id = excluded.id, role = excluded.role, updated_at = excluded.updated_at
        where excluded.id > conversation.id;
    end`,
    // Retention removes the oldest first: when the latest message goes, all of them are gone.
    `create trigger ${table}_conversation_out after delete on ${table} begin
      delete from conversation
      where session_key = old.session_key and id = old.id
        and not exists (select 1 from chat_session where 'local:' || chat_session.id = old.session_key);
    end`,
  ];
}
