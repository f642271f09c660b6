/** When what was told where, so that equal notices are counted and not repeated (contract 11). */
export const NOTICES: string[] = [
  `create table notice_told (
    -- A session key, webhook:<name>, or a program with its arguments.
    place text not null,
    kind text not null,
    about text not null,
    at integer not null,
    -- Equal ones since then.
    left_out integer not null default 0,
    primary key (place, kind, about)
  ) strict, without rowid`,
  `create index notice_told_at on notice_told (at)`,
];
