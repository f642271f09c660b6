/**
 * What ended runs used is summed up from this index alone, for GET /api/usage (contract 17): in its row it stands behind
 * their texts, which would be read page by page. Runs that go on are not in it, so that each is entered once, at its end.
 */
export const USAGE: string[] = [
  `drop index execution_completed`,
  `create index execution_completed on execution (
    completed_at, engine, session_key, status, started_at, input_tokens, output_tokens, cost_usd)
    where completed_at is not null`,
];
