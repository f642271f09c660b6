import { randomInt } from "node:crypto";
import { digest } from "../../base/bytes.ts";
import { conflict, invalid } from "../../domain/call/error.ts";
import {
  formatPlatformKey,
  type Pair,
  type Pairing,
  PAIRING_LIFE_MS,
  STRANGERS_PER_MINUTE_MAX,
} from "../../domain/chat/platform.ts";
import type { IncomingMessage, ReceiveResult } from "../../platform/platform.ts";
import { isDuplicate } from "../../store/db/database.ts";
import { countPairings, findPairing, insertPairing, pairSender } from "../../store/chat/platform.ts";
import { type Answer, answer, requireFound } from "../call/answer.ts";
import { type Call, recordBy } from "../call/call.ts";
import type { Deps } from "../call/services.ts";
import { IGNORED, type PlatformRules } from "../call/platforms.ts";
import { buildNotice } from "./send_notice.ts";

// No letters or digits that look alike.
const ALPHABET = "ABCDEFGHJKMNPQRSTUVWXYZ23456789";
const CODE_CHARACTERS = 8;
const MINUTE_MS = 60_000;

/** Sends a stranger in a direct chat one reply with a pairing code. Stores no message and calls no agent (contract 10.2). */
export async function greetStranger(
  { db, clock }: Deps<"db" | "clock">,
  { name }: PlatformRules,
  incoming: IncomingMessage,
): Promise<ReceiveResult> {
  const now = clock.now();
  const { sender } = incoming;
  const since = now - MINUTE_MS;
  const { recent, isOpen } = await countPairings(db, name, { sender: sender.id, since, now });
  if (isOpen || recent >= STRANGERS_PER_MINUTE_MAX) return IGNORED;
  const code = generateCode();
  const pairing = {
    platform: name,
    sender: sender.id,
    name: sender.name,
    code_hash: hashCode(code),
    created_at: now,
    expires_at: now + PAIRING_LIFE_MS,
  };
  const words =
    `This service does not know you yet. Your id is ${sender.id}. Its operator can give you access with: ` +
    `svc ctl platform pair ${code} (within one hour).`;
  try {
    await db.write([
      ...insertPairing(pairing),
      ...buildNotice(name, formatPlatformKey(name, incoming), "", words, now),
    ]);
  } catch (error) {
    // Another message of the same stranger arrived at the same time and got the reply.
    if (!isDuplicate(error)) throw error;
    return IGNORED;
  }
  return { outcome: "answered", message_id: "" };
}

function generateCode(): string {
  const letters = Array.from({ length: CODE_CHARACTERS }, () => ALPHABET[randomInt(ALPHABET.length)] ?? "");
  return `${letters.slice(0, 4).join("")}-${letters.slice(4).join("")}`;
}

function hashCode(code: string): string {
  return digest(code.toUpperCase().replace(/[^A-Z0-9]/g, ""));
}

/** Finds a code's sender and gives access when the request names the same one. Throws `not_found`. */
export async function pair(
  { db, clock }: Deps<"db" | "clock">,
  call: Call,
  input: Pair,
): Promise<Answer<Pairing>> {
  const now = clock.now();
  const found = requireFound(await findPairing(db, hashCode(input.code), now), "code", input.code);
  const shown = {
    platform: found.platform,
    sender: found.sender,
    name: found.name,
    expires_at: found.expires_at,
  };
  if (input.sender === undefined) return answer({ ...shown, paired: false });
  if (input.sender !== found.sender) throw invalid("sender", "is not the sender of this code");
  await db.writeOr([
    ...pairSender(found, call.caller.subject, now),
    recordBy(call, now, {
      kind: "platform.paired",
      data: { platform: found.platform, sender: found.sender, name: found.name },
    }),
  ], () => conflict("Cannot pair: another request used the code first."));
  return answer({ ...shown, paired: true });
}
