/** People: users, their tokens, where a change came from (contract 9). */
export const PEOPLE: string[] = [
  `create table user (
    id text primary key,
    name text not null,
    name_key text not null unique,
    role text not null check (role in ('viewer', 'operator', 'admin')),
    disabled integer not null default 0 check (disabled in (0, 1)),
    -- '' for whoever signs in elsewhere, and for the configured operator, whose hash is in credential.
    password_hash text not null default '',
    -- Goes up with each change of the password and ends older logins.
    version integer not null default 1 check (version >= 1),
    origin text not null check (origin in ('operator', 'local', 'oidc')),
    -- Who an OpenID provider says that this is.
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
  `create index token_expiry on token (expires_at) where expires_at is not null`,

  // '' is the operator, as all were before there were users.
  `alter table refresh_token add column user_id text not null default ''`,
  // A browser's is in two halves, of which neither is kept where the other is.
  `alter table refresh_token add column kind text not null default 'login' check (kind in ('login', 'browser'))`,
  `create index refresh_token_user on refresh_token (user_id)`,

  `alter table journal add column address text not null default ''`,
  `alter table journal add column user_agent text not null default ''`,
  `create index journal_audit on journal (seq) where address <> ''`,
  `create index journal_actor on journal (actor, seq)`,
];
