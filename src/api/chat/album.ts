import type { IncomingMessage } from "../../platform/platform.ts";
import type { Database, Statement } from "../../store/db/database.ts";
import { findSetting, storeSetting } from "../../store/db/setting.ts";

// The messages of an album arrive within seconds.
const ALBUMS_KEPT = 50;

/** Checks whether another message of the same album mentioned the service. */
export async function isAlbumMentioned(
  db: Database,
  platform: string,
  incoming: IncomingMessage,
): Promise<boolean> {
  return isInAlbum(incoming) && (await listAlbums(db, platform)).includes(formatAlbum(incoming));
}

/** Stores that an album mentions the service, because the mention is valid for the other messages of the album, too. */
export async function rememberAlbum(
  db: Database,
  platform: string,
  incoming: IncomingMessage,
): Promise<Statement[]> {
  if (!isInAlbum(incoming) || !incoming.isMentioned) return [];
  const album = formatAlbum(incoming);
  const others = (await listAlbums(db, platform)).filter((one) => one !== album);
  return [storeSetting(`albums:${platform}`, JSON.stringify([album, ...others].slice(0, ALBUMS_KEPT)))];
}

async function listAlbums(db: Database, platform: string): Promise<string[]> {
  return JSON.parse(await findSetting(db, `albums:${platform}`) ?? "[]");
}

function isInAlbum({ album = "", isDirect }: IncomingMessage): boolean {
  return album !== "" && !isDirect;
}

function formatAlbum({ chat, sender, album }: IncomingMessage): string {
  return JSON.stringify([chat, sender.id, album]);
}
