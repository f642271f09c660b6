import { type Database, insertRow, type Statement } from "./database.ts";

interface StoredAnswer {
  fingerprint: string;
  status: number;
  response: string;
}

/** Stores the response in the batch that does the work (reliability DUR-2). Replaces a response older than `since`. */
export function insertAnswer(key: string, answer: StoredAnswer, now: number, since: number): Statement[] {
  const { fingerprint, status, response } = answer;
  return [
    { sql: "delete from idempotency where key = ? and created_at <= ?", args: [key, since] },
    insertRow("idempotency", { key, fingerprint, status, response, created_at: now }),
  ];
}

export function findAnswer(db: Database, key: string, since: number): Promise<StoredAnswer | null> {
  return db.first<StoredAnswer>(
    "select fingerprint, status, response from idempotency where key = ? and created_at > ?",
    [key, since],
  );
}

export function deleteAnswer(key: string): Statement {
  return { sql: "delete from idempotency where key = ?", args: [key] };
}
