import type { Media } from "../../domain/chat/message.ts";
import { MERGED_MAX_BYTES } from "../../domain/chat/quiet_window.ts";
import type { Database } from "../db/database.ts";

interface PartRow {
  id: string;
  content: string;
  /** JSON text. */
  media: string;
}

interface InboundPart {
  id: string;
  content: string;
  media: Media | null;
}

/** Lists a message and everything that was merged into it, in order of arrival. */
export async function listParts(db: Database, id: string): Promise<InboundPart[]> {
  return (await readParts(db, id)).map((row) => ({
    id: row.id,
    content: row.content,
    media: JSON.parse(row.media),
  }));
}

// Usually there is one part. first() returns its text as it is, while in a list it is JSON and up to six times as large.
async function readParts(db: Database, id: string): Promise<PartRow[]> {
  const whole = await db.first<PartRow>(
    `select id, iif(octet_length(content) <= ?, content, '') as content, media
    from inbound_message
    where id = ? and not exists (select 1 from inbound_message as part where part.merged_into = inbound_message.id)`,
    [MERGED_MAX_BYTES, id],
  );
  if (whole !== null) return [whole];
  return await db.read<PartRow>(
    `select id, iif(sum(octet_length(content)) over (order by id) <= ?, content, '') as content, media
    from inbound_message
    where id = ? or merged_into = ?
    order by id`,
    [MERGED_MAX_BYTES, id, id],
  );
}

export interface MessageText {
  content: string;
  /** JSON text. */
  media: string;
  reply_to: string;
}

/** Finds the text and file of a received message, or null. */
export function findMessageText(db: Database, id: string): Promise<MessageText | null> {
  return db.first<MessageText>(
    "select content, media, reply_to from inbound_message where id = ? and status = 'received'",
    [id],
  );
}
