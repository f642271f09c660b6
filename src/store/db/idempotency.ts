import type { Database, Row, Statement } from "./database.ts";

/** The first answer to a request that carried an idempotency key. */
interface StoredAnswer extends Row {
  fingerprint: string;
  status: number;
  response: string;
}

/**
 * Stores the answer in the batch that does the work, so that neither can exist without the other (reliability DUR-2). It
 * replaces an answer older than `since`: that key is free again, even when retention has not deleted it yet.
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

/** The stored answer that is younger than `since`, or null. */
export function findAnswer(db: Database, key: string, since: number): Promise<StoredAnswer | null> {
  return db.first<StoredAnswer>(
    "select fingerprint, status, response from idempotency where key = ? and created_at > ?",
    [key, since],
  );
}
