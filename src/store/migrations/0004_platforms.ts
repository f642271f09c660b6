/** Platforms: who may speak, parts of replies, webhooks that are sent out (contract 10, contract 11). */
export const PLATFORMS: string[] = [
  `alter table inbound_message add column sender_name text not null default ''`,
  // What a program sent: never a mention, a command or an answer.
  `alter table inbound_message add column is_data integer not null default 0 check (is_data in (0, 1))`,
  // When somebody asked to send it again; its platform may then be away for as long as before.
  `alter table outbound_message add column resent_at integer`,
  // How many tasks of agents led to a message that a run sent; 0 for what people and programs say.
  `alter table inbound_message add column depth integer not null default 0`,
  `create index outbound_ending on outbound_message (substr(id, -6))`,
  // A file that is still to be fetched from the platform, as the platform describes it; '' when there is none.
  `alter table inbound_message add column attachment text not null default ''`,
  `create index inbound_attachment on inbound_message (id) where attachment <> ''`,

  // The replies of one platform that wait, conversation by conversation.
  `create index outbound_waiting on outbound_message (platform, session_key, id)
    where status = 'failed' and due_at is not null`,

  // Those that are due, in order, so that a step reads what it sends and not all that waits.
  `create index outbound_ready on outbound_message (platform, due_at, id)
    where status = 'failed' and due_at is not null`,

  // A reply as it is sent: cut for its platform. A part that has sending_at and no sent_at may have arrived.
  `create table outbound_part (
    outbound_id text not null references outbound_message (id) on delete cascade,
    number integer not null,
    body text not null check (json_valid(body)),
    sending_at integer,
    -- How many times it was sent without an answer.
    unanswered integer not null default 0,
    sent_at integer,
    -- What the platform calls the message.
    sent_as text not null default '',
    primary key (outbound_id, number)
  ) strict, without rowid`,
  `create index outbound_part_sending on outbound_part (sending_at) where sending_at is not null`,
  // What a reply on the platform replies to.
  `create index outbound_part_sent_as on outbound_part (sent_as) where sent_as <> ''`,

  // The message that shows what a run does, while it does it.
  `create table platform_progress (
    session_key text primary key,
    platform text not null,
    -- What the platform calls the message; '' when that is not known.
    sent_as text not null,
    text text not null,
    edits integer not null,
    edited_at integer not null
  ) strict, without rowid`,

  `create table platform_sender (
    platform text not null,
    id text not null,
    name text not null,
    paired_by text not null,
    created_at integer not null,
    primary key (platform, id)
  ) strict, without rowid`,

  // A stranger who was given a code; the code itself is known to them only.
  `create table platform_pairing (
    platform text not null,
    sender text not null,
    name text not null,
    code_hash text not null unique,
    created_at integer not null,
    expires_at integer not null,
    primary key (platform, sender)
  ) strict, without rowid`,
  `create index platform_pairing_age on platform_pairing (platform, created_at)`,

  `create table webhook (
    id text primary key,
    name text not null,
    name_key text not null unique,
    url text not null,
    secret text not null,
    events text not null check (json_valid(events)),
    enabled integer not null default 1 check (enabled in (0, 1)),
    origin text not null check (origin in ('config', 'api')),
    allow_private integer not null default 0 check (allow_private in (0, 1)),
    -- Why the service switched it off; '' while it did not.
    disabled_reason text not null default '',
    -- Everything up to this event was delivered or did not concern it.
    cursor integer not null,
    attempt integer not null default 0,
    due_at integer not null,
    created_at integer not null,
    updated_at integer not null
  ) strict`,
  `create index webhook_due on webhook (due_at) where enabled = 1`,

  `create index webhook_cursor on webhook (cursor) where enabled = 1`,

  // One try each.
  `create table webhook_delivery (
    id text primary key,
    webhook_id text not null references webhook (id) on delete cascade,
    seq integer not null,
    kind text not null,
    attempt integer not null,
    status integer not null,
    error text not null default '',
    duration_ms integer not null,
    created_at integer not null
  ) strict`,
  `create index webhook_delivery_of on webhook_delivery (webhook_id, id)`,
  `create index webhook_delivery_age on webhook_delivery (created_at)`,
];
