import { type Media, MERGED_MAX_BYTES } from "../domain/message.ts";
import type { Database } from "./database.ts";

/** A message and everything that was merged into it, in order of arrival. */
export async function listParts(
  db: Database,
  id: string,
): Promise<{ id: string; content: string; media: Media | null }[]> {
  const rows = await db.read<{ id: string; content: string; media: string }>(
    `select id, iif(sum(octet_length(content)) over (order by id) <= ?, content, '') as content, media
    from inbound_message
    where id = ? or merged_into = ?
    order by id`,
    [MERGED_MAX_BYTES, id, id],
  );
  return rows.map((row) => ({ id: row.id, content: row.content, media: JSON.parse(row.media) }));
}
