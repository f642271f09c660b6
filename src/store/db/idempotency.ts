import type { Database, Row, Statement } from "./database.ts";

/** The first response to a request with an idempotency key. */
interface StoredAnswer extends Row {
  fingerprint: string;
  status: number;
  response: string;
}

/**
 * Stores the response in the batch that does the work, so that neither exists without the other (reliability DUR-2). Replaces a
 * response older than `since`: its key is free again.
 */
export function insertAnswer(key: string, answer: StoredAnswer, now: number, since: number): Statement[] {
  return [
    { sql: "delete from idempotency where key = ? and created_at <= ?", args: [key, since] },
    {
      sql: "insert into idempotency (key, fingerprint, status, response, created_at) values (?, ?, ?, ?, ?)",
      args: [key, answer.fingerprint, answer.status, answer.response, now],
    },
  ];
}

export function findAnswer(db: Database, key: string, since: number): Promise<StoredAnswer | null> {
  return db.first<StoredAnswer>(
    "select fingerprint, status, response from idempotency where key = ? and created_at > ?",
    [key, since],
  );
}
