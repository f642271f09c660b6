import { WAKEUP } from "../../base/wakeups.ts";
import type { Media } from "../../domain/chat/message.ts";
import { type Database, guarded, type Row, type Statement } from "../db/database.ts";

/** A received message whose file is still on its platform. */
export interface WaitingAttachment extends Row {
  id: string;
  session_key: string;
  platform: string;
  /** JSON of what the platform said of it. */
  attachment: string;
  received_at: number;
}

/** Received messages whose files are still to be fetched, oldest first, but for those that are being fetched and those of `full` platforms. */
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

/** The file is here: the message has it, and can go on. Guarded by its waiting for it. */
export function attachFile(id: string, media: Media): Statement[] {
  return guarded(
    `update inbound_message
    set media = ?, attachment = ''
    where id = ? and status = 'received' and attachment <> ''`,
    [JSON.stringify(media), id],
    WAKEUP.intake,
  );
}

/** There will be no file: the text says so, and the message goes on. */
export function giveUpFile(id: string, words: string): Statement[] {
  return guarded(
    `update inbound_message
    set content = trim(content || char(10) || ?, char(10)), attachment = ''
    where id = ? and status = 'received' and attachment <> ''`,
    [words, id],
    WAKEUP.intake,
  );
}
