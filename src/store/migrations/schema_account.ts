/** Users, their passwords, logins and tokens. */
export const ACCOUNT_SCHEMA: string[] = [
  // The password of the configured operator.
  `create table credential (
    username text primary key,
    password_hash text not null,
    source text not null check (source in ('generated', 'config', 'environment', 'operator')),
    -- Increases with each change of the password, which invalidates older tokens.
    version integer not null check (version >= 1),
    updated_at integer not null
  ) strict`,

  `create table user (
    id text primary key,
    name text not null,
    name_key text not null unique,
    -- Equal for names that look alike.
    look_key text not null unique,
    role text not null check (role in ('viewer', 'operator', 'admin')),
    disabled integer not null default 0 check (disabled in (0, 1)),
    origin text not null check (origin in ('operator', 'local', 'oidc')),
    -- '' for users of an OpenID provider, and for the configured operator, whose hash is in credential.
    password_hash text not null default '',
    -- Increases with each change of the password, which ends older logins.
    version integer not null default 1 check (version >= 1),
    -- The identity at the OpenID provider.
    issuer text not null default '',
    subject text not null default '',
    created_at integer not null,
    updated_at integer not null,
    last_login_at integer,
    check (origin <> 'operator' or role = 'admin' and disabled = 0),
    check ((origin = 'oidc') = (issuer <> ''))
  ) strict`,
  `create unique index user_subject on user (issuer, subject) where issuer <> ''`,
  `create unique index user_operator on user (origin) where origin = 'operator'`,
  `create index user_role on user (role, id)`,

  `create table token (
    id text primary key,
    user_id text not null references user (id) on delete cascade,
    name text not null,
    name_key text not null unique,
    scopes text not null check (json_valid(scopes)),
    expires_at integer,
    created_at integer not null,
    last_used_at integer
  ) strict`,
  `create index token_user on token (user_id, id)`,

  // Encrypted values. A value that no key fits stays until an admin sets it again or deletes it.
  `create table secret (
    name text primary key,
    -- Names the key that encrypted the value.
    key_id text not null,
    sealed text not null,
    created_at integer not null,
    updated_at integer not null,
    last_used_at integer
  ) strict, without rowid`,

  // The workers that may use a secret.
  `create table secret_worker (
    secret_name text not null references secret (name) on delete cascade,
    worker_id text not null references worker (id) on delete cascade,
    primary key (secret_name, worker_id)
  ) strict, without rowid`,
  `create index secret_worker_worker on secret_worker (worker_id)`,

  `create table refresh_token (
    id text primary key,
    token_hash text not null unique,
    -- A browser's token has two halves, stored in different places.
    kind text not null default 'login' check (kind in ('login', 'browser')),
    username text not null,
    -- '' for the configured operator.
    user_id text not null default '',
    version integer not null,
    created_at integer not null,
    expires_at integer not null
  ) strict`,
  `create index refresh_token_expiry on refresh_token (expires_at)`,
  `create index refresh_token_user on refresh_token (user_id)`,

  // Browsers that receive Web Push. A device ends with its login.
  `create table device (
    id text primary key,
    user_id text not null references user (id) on delete cascade,
    login_id text not null references refresh_token (id) on delete cascade,
    name text not null,
    endpoint text not null unique,
    -- The host of the endpoint.
    service text not null,
    -- The public key of the browser and its shared secret, in base64url.
    p256dh text not null,
    auth text not null,
    -- Our public key at the time of the subscription, for which alone the push service accepts messages.
    server_key text not null,
    tell text not null check (json_valid(tell)),
    -- Failures since the last success, and the end of the pause after them.
    failures integer not null default 0,
    retry_at integer not null default 0,
    created_at integer not null,
    updated_at integer not null
  ) strict`,
  `create index device_user on device (user_id, id)`,
  `create index device_login on device (login_id)`,
  `create index device_ending on device (substr(id, -6))`,

  // Messages to devices. A message outlives its device, so that its outcome can be read.
  `create table device_push (
    id text primary key,
    device_id text not null,
    -- A kind of inbox item, or execution for a run that completed.
    kind text not null,
    -- The item or the run; '' for several together.
    item_id text not null,
    -- How many items or runs the message stands for.
    items integer not null default 1,
    status text not null check (status in ('waiting', 'sent', 'failed', 'skipped')),
    attempt integer not null default 0,
    -- HTTP status of the push service; 0 without an answer.
    response integer not null default 0,
    error text not null default '',
    created_at integer not null,
    ended_at integer
  ) strict`,
  `create index device_push_waiting on device_push (device_id, id) where status = 'waiting'`,
  `create index device_push_device on device_push (device_id, id)`,
  `create index device_push_age on device_push (created_at)`,

  `create table login_failure (
    who text primary key,
    minute integer not null,
    failures integer not null
  ) strict`,
];
