import { PAIRINGS_MAX, type Sender, senderSchema } from "../../domain/chat/platform.ts";
import type { Json } from "../../domain/call/json.ts";
import { type Database, guarded, type Row, type Statement } from "../db/database.ts";
import { allShown, shown } from "../db/json_projection.ts";

const SENDER_JSON = shown("platform_sender", senderSchema);

/** Senders of a platform that are shown at most. */
const SENDERS_SHOWN_MAX = 1_000;

/** Whether this sender was paired. */
export async function isPaired(db: Database, platform: string, sender: string): Promise<boolean> {
  return await db.first("select 1 as one from platform_sender where platform = ? and id = ?", [
    platform,
    sender,
  ]) !==
    null;
}

/** Who was paired on a platform, by id. */
export function listSenders(db: Database, platform: string): Promise<Json<Sender>[]> {
  return allShown(db, SENDER_JSON, "from platform_sender where platform = ? order by id limit ?", [
    platform,
    SENDERS_SHOWN_MAX,
  ]);
}

/** A sender loses the right to speak, guarded by having had it. */
export function deleteSender(platform: string, sender: string): Statement[] {
  return guarded("delete from platform_sender where platform = ? and id = ?", [platform, sender]);
}

/** A stranger who was given a code. */
interface PairingRow {
  platform: string;
  sender: string;
  name: string;
  expires_at: number;
}

/** Strangers who were given a code since `since`, and whether this one has an open one. */
export async function countPairings(
  db: Database,
  platform: string,
  { sender, since, now }: { sender: string; since: number; now: number },
): Promise<{ recent: number; isOpen: boolean }> {
  const row = await db.first<{ recent: number; open: number }>(
    `select
      (select count(*) from platform_pairing where platform = ? and created_at > ?) as recent,
      (select count(*) from platform_pairing where platform = ? and sender = ? and expires_at > ?) as open`,
    [platform, since, platform, sender, now],
  );
  return { recent: row?.recent ?? 0, isOpen: (row?.open ?? 0) > 0 };
}

interface NewPairing extends PairingRow {
  code_hash: string;
  created_at: number;
}

/** A stranger gets a code; the oldest of PAIRINGS_MAX gives way, and those that are over (contract 10). */
export function insertPairing(
  pairing: NewPairing,
): Statement[] {
  const { platform, sender, name, code_hash, created_at, expires_at } = pairing;
  return [
    {
      sql: "delete from platform_pairing where platform = ? and expires_at <= ?",
      args: [platform, created_at],
    },
    {
      sql: `insert into platform_pairing (platform, sender, name, code_hash, created_at, expires_at)
        values (?, ?, ?, ?, ?, ?)`,
      args: [platform, sender, name, code_hash, created_at, expires_at],
    },
    {
      sql: `delete from platform_pairing
        where platform = ? and sender not in (
          select sender from platform_pairing where platform = ? order by created_at desc, sender limit ?)`,
      args: [platform, platform, PAIRINGS_MAX],
    },
  ];
}

/** Who has this code, or null. */
export function findPairing(db: Database, codeHash: string, now: number): Promise<PairingRow | null> {
  return db.first<PairingRow & Row>(
    "select platform, sender, name, expires_at from platform_pairing where code_hash = ? and expires_at > ?",
    [codeHash, now],
  );
}

/** The stranger may speak from now on; guarded by the code still being there, so that it counts once. */
export function pairSender(
  { platform, sender, name }: PairingRow,
  by: string,
  now: number,
): Statement[] {
  return [
    ...guarded("delete from platform_pairing where platform = ? and sender = ?", [platform, sender]),
    {
      sql: `insert into platform_sender (platform, id, name, paired_by, created_at)
        values (?, ?, ?, ?, ?)
        on conflict do update set name = excluded.name`,
      args: [platform, sender, name, by, now],
    },
  ];
}
