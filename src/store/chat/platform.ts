import { PAIRINGS_MAX, type Sender, senderSchema } from "../../domain/chat/platform.ts";
import type { Json } from "../../domain/call/json.ts";
import { type Database, guard, insertRow, type Statement } from "../db/database.ts";
import { buildJsonSql, readAllJson } from "../db/json_projection.ts";

const SENDER_JSON = buildJsonSql("platform_sender", senderSchema);

const SENDERS_LISTED_MAX = 1_000;

export async function isPaired(db: Database, platform: string, sender: string): Promise<boolean> {
  const sql = "select 1 as one from platform_sender where platform = ? and id = ?";
  return await db.first(sql, [platform, sender]) !== null;
}

/** Lists the paired senders of a platform by id. */
export function listSenders(db: Database, platform: string): Promise<Json<Sender>[]> {
  const rest = "from platform_sender where platform = ? order by id limit ?";
  return readAllJson(db, SENDER_JSON, rest, [platform, SENDERS_LISTED_MAX]);
}

export function deleteSender(platform: string, sender: string): Statement[] {
  return guard("delete from platform_sender where platform = ? and id = ?", [platform, sender]);
}

interface PairingRow {
  platform: string;
  sender: string;
  name: string;
  expires_at: number;
}

/** Counts the pairing codes since `since`, and returns whether this sender has a valid one. */
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

/** Stores a pairing code. Deletes expired codes, and the oldest codes beyond PAIRINGS_MAX (contract 10). */
export function insertPairing(pairing: NewPairing): Statement[] {
  const { platform, sender, name, code_hash, created_at, expires_at } = pairing;
  return [
    {
      sql: "delete from platform_pairing where platform = ? and expires_at <= ?",
      args: [platform, created_at],
    },
    insertRow("platform_pairing", { platform, sender, name, code_hash, created_at, expires_at }),
    {
      sql: `delete from platform_pairing
        where platform = ? and sender not in (
          select sender from platform_pairing where platform = ? order by created_at desc, sender limit ?)`,
      args: [platform, platform, PAIRINGS_MAX],
    },
  ];
}

/** Finds the valid pairing with this code, or null. */
export function findPairing(db: Database, codeHash: string, now: number): Promise<PairingRow | null> {
  return db.first<PairingRow>(
    "select platform, sender, name, expires_at from platform_pairing where code_hash = ? and expires_at > ?",
    [codeHash, now],
  );
}

/** Pairs a sender, guarded by its code, which is valid once. */
export function pairSender({ platform, sender, name }: PairingRow, by: string, now: number): Statement[] {
  return [
    ...guard("delete from platform_pairing where platform = ? and sender = ?", [platform, sender]),
    {
      sql: `insert into platform_sender (platform, id, name, paired_by, created_at)
        values (?, ?, ?, ?, ?)
        on conflict do update set name = excluded.name`,
      args: [platform, sender, name, by, now],
    },
  ];
}
