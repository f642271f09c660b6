import type { Database, Row } from "../db/database.ts";

/** What a message says. */
export interface Said extends Row {
  content: string;
  /** JSON text. */
  media: string;
  reply_to: string;
}

/** What a received message says, or null. */
export function findSaid(db: Database, id: string): Promise<Said | null> {
  return db.first<Said>(
    "select content, media, reply_to from inbound_message where id = ? and status = 'received'",
    [id],
  );
}
