import { randomInt } from "node:crypto";
import { digest } from "../../base/bytes.ts";
import { conflict, invalid, notFound } from "../../domain/call/error.ts";
import {
  type Pair,
  type Pairing,
  PAIRING_LIFE_MS,
  platformKey,
  STRANGERS_PER_MINUTE_MAX,
} from "../../domain/chat/platform.ts";
import type { Incoming, Received } from "../../platform/platform.ts";
import { record } from "../../store/events/journal.ts";
import { isDuplicate } from "../../store/db/database.ts";
import { countPairings, findPairing, insertPairing, pairSender } from "../../store/chat/platform.ts";
import { type Answer, answer } from "../call/answer.ts";
import type { Call } from "../call/call.ts";
import type { Deps } from "../call/services.ts";
import { IGNORED, type PlatformRules } from "../call/platforms.ts";
import { say } from "./send_notice.ts";

// No letter or digit that looks like another.
const ALPHABET = "ABCDEFGHJKMNPQRSTUVWXYZ23456789";
const CODE_CHARACTERS = 8;
const MINUTE_MS = 60_000;

/**
 * A stranger in a direct chat gets one answer with a code; nothing that they say is stored, and no agent sees it (contract 10.2,
 * reliability PLT-4).
 */
export async function greetStranger(
  { db, clock }: Deps<"db" | "clock">,
  { name }: PlatformRules,
  incoming: Incoming,
): Promise<Received> {
  const now = clock.now();
  const { sender } = incoming;
  const since = now - MINUTE_MS;
  const { recent, isOpen } = await countPairings(db, name, { sender: sender.id, since, now });
  if (isOpen || recent >= STRANGERS_PER_MINUTE_MAX) return IGNORED;
  const code = newCode();
  const pairing = {
    platform: name,
    sender: sender.id,
    name: sender.name,
    code_hash: hashOf(code),
    created_at: now,
    expires_at: now + PAIRING_LIFE_MS,
  };
  const words =
    `This service does not know you yet. Your id is ${sender.id}. Whoever runs it can let you in with: ` +
    `svc ctl platform pair ${code} (within one hour).`;
  try {
    await db.write([...insertPairing(pairing), ...say(name, platformKey(name, incoming), "", words, now)]);
  } catch (error) {
    // The same stranger twice at once: one of the two was answered.
    if (!isDuplicate(error)) throw error;
    return IGNORED;
  }
  return { outcome: "answered", message_id: "" };
}

function newCode(): string {
  const letters = Array.from({ length: CODE_CHARACTERS }, () => ALPHABET[randomInt(ALPHABET.length)] ?? "");
  return `${letters.slice(0, 4).join("")}-${letters.slice(4).join("")}`;
}

function hashOf(code: string): string {
  return digest(code.toUpperCase().replace(/[^A-Z0-9]/g, ""));
}

/**
 * POST /api/platforms/pair: says whose code it is, and with that `sender` lets them in (contract 10). Throws `not_found` for a code
 * that is over or was never given.
 */
export async function pair(
  { db, clock }: Deps<"db" | "clock">,
  call: Call,
  input: Pair,
): Promise<Answer<Pairing>> {
  const now = clock.now();
  const found = await findPairing(db, hashOf(input.code), now);
  if (found === null) throw notFound("code", input.code);
  const shown = {
    platform: found.platform,
    sender: found.sender,
    name: found.name,
    expires_at: found.expires_at,
  };
  if (input.sender === undefined) return answer({ ...shown, paired: false });
  if (input.sender !== found.sender) throw invalid("sender", "is not who was given this code");
  await db.writeOr([
    ...pairSender(found, call.caller.subject, now),
    record(now, {
      kind: "platform.paired",
      actor: call.caller.subject,
      data: { platform: found.platform, sender: found.sender, name: found.name },
    }),
  ], () => conflict("Cannot pair: the code was used meanwhile"));
  return answer({ ...shown, paired: true });
}
