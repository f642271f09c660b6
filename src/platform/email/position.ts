import { digest } from "../../base/bytes.ts";
import type { Gap } from "../platform.ts";

const RECENT_MAX = 200;
const DIGEST_CHARACTERS = 16;

/** The last mail that the service has handled. */
export interface Position {
  /** UIDVALIDITY of the mailbox. */
  validity: string;
  uid: number;
  /** When the newest handled mail arrived, Unix ms. */
  at: number;
  /** Digests of the latest heard mails. They find those mails again when the mailbox numbers its mails anew. */
  recent: string[];
}

export async function readPosition(gap: Gap | undefined): Promise<Position | null> {
  const text = await gap?.find() ?? "";
  return text === "" ? null : JSON.parse(text);
}

export async function savePosition(gap: Gap | undefined, position: Position): Promise<void> {
  await gap?.save(JSON.stringify(position));
}

export function isRecent({ recent }: Position, mark: string): boolean {
  return recent.includes(mark);
}

export function addRecent(position: Position, mark: string): Position {
  return { ...position, recent: [...position.recent, mark].slice(-RECENT_MAX) };
}

/** A sender can't hide another's mail by its Message-ID. */
export function markMail(sender: string, messageId: string): string {
  return digest(`${sender}\n${messageId}`).slice(0, DIGEST_CHARACTERS);
}
