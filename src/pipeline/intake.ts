// received -> feeding (the last part), received -> merged (the parts before it); chat_commands.ts and answers.ts take theirs out before
import type { Clock } from "../base/clock.ts";
import { mergedMessages, quietUntil, quietWindowMs } from "../domain/message.ts";
import type { Database } from "../store/database.ts";
import { record } from "../store/journal.ts";
import { feedMessage, listReceived, type WaitingMessage } from "../store/inbound.ts";
import { BELL, type Bells } from "../base/bells.ts";
import { takeAnswers } from "./answers.ts";
import { type CarryOut, takeCommands } from "./chat_commands.ts";
import { Stage } from "./loop.ts";

const MESSAGES_PER_ROUND = 1_000;

/** Joins messages that are sent one after the other: after a quiet window those of a conversation become one (contract 4.2). */
export function createIntake(
  options: {
    db: Database;
    clock: Clock;
    bells: Bells;
    quietWindow: number | undefined;
    carryOut: CarryOut;
  },
): Stage {
  const { db, clock, bells, quietWindow, carryOut } = options;
  return new Stage({ name: "intake", bell: BELL.intake, clock, bells, step });

  async function step(): Promise<number> {
    const listed = await listReceived(db, MESSAGES_PER_ROUND);
    const now = clock.now();
    const received = await takeAnswers(db, await takeCommands(db, listed, carryOut), now);
    let soonest = Infinity;
    const closed: WaitingMessage[][] = [];
    for (const { parts, complete } of groupsOf(received)) {
      const [first] = parts;
      const last = parts.at(-1);
      if (first === undefined || last === undefined) continue;
      // The stage of the attachments ends this, one way or the other.
      if (parts.some((part) => part.has_file === 1)) continue;
      const windowMs = quietWindowMs(last.platform, quietWindow);
      const until = quietUntil(first.received_at, last.received_at, windowMs);
      // A message from the future means that the clock was set back; it does not wait any longer.
      if (!complete && until > now && first.received_at <= now) soonest = Math.min(soonest, until - now);
      else closed.push(...mergedMessages(parts));
    }
    await Promise.all(closed.map((parts) => feed(parts, now)));
    // There can be more to read at once only when some of these were fed.
    return listed.length === MESSAGES_PER_ROUND && closed.length > 0 ? 0 : soonest;
  }

  async function feed(parts: WaitingMessage[], now: number): Promise<void> {
    const last = parts.at(-1);
    if (last === undefined) return;
    const earlier = parts.slice(0, -1).map((part) => part.id);
    const { session_key } = last;
    await db.write([
      ...feedMessage(last.id, earlier, now),
      ...earlier.map((id) =>
        record(now, { kind: "message.merged", session_key, message_id: id, data: { into: last.id } })
      ),
      record(now, {
        kind: "message.feeding",
        session_key,
        message_id: last.id,
        data: { parts: parts.length },
      }),
    ]);
  }
}

/** Messages that become one. A complete group is not waited for. */
interface Group {
  parts: WaitingMessage[];
  complete: boolean;
}

/** The messages of each conversation in groups. One that is read alone is a group, and completes the one before it (contract 8.8). */
function groupsOf(messages: WaitingMessage[]): Group[] {
  const groups: Group[] = [];
  for (const message of messages) {
    const before = groups.at(-1);
    const same = before?.parts[0]?.session_key === message.session_key;
    if (before !== undefined && same && !message.alone && !before.complete) before.parts.push(message);
    else {
      if (before !== undefined && same) before.complete = true;
      groups.push({ parts: [message], complete: Boolean(message.alone) });
    }
  }
  return groups;
}
