/** Who waits to take the database over, on a libSQL server (contract 18). Times are those of the database's server. */
export const STANDBY: string[] = [
  `create table standby (
    id text primary key,
    host text not null,
    pid integer not null,
    seen_at integer not null
  ) strict`,
];
