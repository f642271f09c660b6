import { WAKEUP } from "../../base/wakeups.ts";
import type { Media } from "../../domain/chat/message.ts";
import { type Database, guard, type Statement } from "../db/database.ts";

/** A received message whose file has yet to be fetched from its platform. */
export interface WaitingAttachment {
  id: string;
  session_key: string;
  platform: string;
  /** The platform's description of the file as JSON. */
  attachment: string;
  received_at: number;
}

/** Lists messages whose files have yet to be fetched, oldest first, without `busy` messages and `full` platforms. */
export function listAttachments(
  db: Database,
  { busy, full, limit }: { busy: readonly string[]; full: readonly string[]; limit: number },
): Promise<WaitingAttachment[]> {
  return db.read<WaitingAttachment>(
    `select id, session_key, platform, attachment, received_at
    from inbound_message
    where attachment <> '' and status = 'received' and id not in (select value from json_each(?))
      and platform not in (select value from json_each(?))
    order by id
    limit ?`,
    [JSON.stringify(busy), JSON.stringify(full), limit],
  );
}

/** Stores the fetched file of a message, guarded by the message waiting for it. */
export function attachFile(id: string, media: Media): Statement[] {
  return guard(
    `update inbound_message
    set media = ?, attachment = ''
    where id = ? and status = 'received' and attachment <> ''`,
    [JSON.stringify(media), id],
    WAKEUP.intake,
  );
}

/** Adds a text to the message in place of a file that cannot be fetched. */
export function giveUpFile(id: string, text: string): Statement[] {
  return guard(
    `update inbound_message
    set content = trim(content || char(10) || ?, char(10)), attachment = ''
    where id = ? and status = 'received' and attachment <> ''`,
    [text, id],
    WAKEUP.intake,
  );
}
