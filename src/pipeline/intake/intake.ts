// Message: received -> feeding (last part) or merged (earlier parts). When the rules decide, the same commit moves it to bee_processed.
import { createLogger } from "../../base/log.ts";
import type { Config } from "../../config/schema.ts";
import { computeQuietUntil, getQuietWindowMs, groupParts } from "../../domain/chat/quiet_window.ts";
import type { Candidate } from "../../domain/chat/routing.ts";
import type { Statement } from "../../store/db/database.ts";
import { record } from "../../store/events/journal.ts";
import { feedMessage, listReceived, type WaitingMessage } from "../../store/chat/inbound.ts";
import { listCandidates } from "../../store/workers/worker.ts";
import { WAKEUP } from "../../base/wakeups.ts";
import { takeAnswers } from "./answers.ts";
import { type CommandExecutor, takeCommands } from "./chat_commands.ts";
import { MessageGrouping } from "./message_grouping.ts";
import { Stage, type StageServices } from "../stage/stage.ts";
import { IMMEDIATE_MAX_BYTES, routeImmediately } from "./routing_rules.ts";

const log = createLogger("intake");
const MESSAGES_PER_ROUND = 1_000;
// Messages that a round reads and routes in one turn of the event loop. The coordinator's stage routes the others.
const AT_ONCE_MAX = 50;

/** Creates the stage that joins consecutive messages of a conversation after a debounce window (contract 4.2). */
export function createIntake(
  options: StageServices & {
    config: Config;
    /** When this process started. */
    openedAt: number;
    executeCommand: CommandExecutor;
  },
): Stage {
  const { db, clock, config, openedAt, executeCommand } = options;
  const grouping = new MessageGrouping(db, config);
  return new Stage(options, { name: "intake", wakeup: WAKEUP.intake, step });

  async function step(): Promise<number> {
    const listed = await listReceived(db, MESSAGES_PER_ROUND);
    const now = clock.now();
    const received = await takeAnswers(db, await takeCommands(db, listed, executeCommand), now);
    let soonest = Infinity;
    const closed: WaitingMessage[][] = [];
    let cached: Promise<Candidate[]> | undefined;
    const candidates = () => cached ??= listCandidates(db);
    for (const { parts, isComplete } of await grouping.group(received, candidates)) {
      const [first] = parts;
      const last = parts.at(-1);
      if (first === undefined || last === undefined) continue;
      // The attachments stage clears this flag in every case.
      if (parts.some((part) => part.has_file === 1)) continue;
      const windowMs = getQuietWindowMs(last.platform, config.bee.quiet_window);
      const until = computeQuietUntil(first.received_at, last.received_at, windowMs);
      // A message from the future means that the clock was set back. It does not wait any longer.
      if (!isComplete && until > now && first.received_at <= now) soonest = Math.min(soonest, until - now);
      else closed.push(...groupParts(parts));
    }
    // Lists messages in order of arrival across conversations.
    closed.sort((a, b) => (a.at(-1)?.id ?? "") < (b.at(-1)?.id ?? "") ? -1 : 1);
    const bySession = Map.groupBy(closed, ([first]) => first?.session_key);
    await Promise.all(closed.map(async (parts, index) => {
      const [first] = parts;
      if (first === undefined) return;
      const isSimple = parts.length === 1 && bySession.get(first.session_key)?.length === 1 &&
        first.bytes <= IMMEDIATE_MAX_BYTES && first.received_at >= openedAt && first.received_at <= now &&
        index < AT_ONCE_MAX;
      if (!isSimple || !await routeNow(first, candidates, now)) await db.write(buildFeeding(parts, now));
    }));
    // The next page differs only when some messages left this one.
    return listed.length === MESSAGES_PER_ROUND && closed.length > 0 ? 0 : soonest;
  }

  // After any failure the coordinator's stage routes the message.
  async function routeNow(
    message: WaitingMessage,
    candidates: () => Promise<Candidate[]>,
    now: number,
  ): Promise<boolean> {
    try {
      const statements = await routeImmediately({ db, config }, message.id, candidates, now);
      if (statements === null) return false;
      const all = [...buildFeeding([message], now), ...statements];
      // The coordinator's stage has nothing to do.
      return (await db.write(
        all.map((one) => one.wakeup === WAKEUP.bee ? { ...one, wakeup: undefined } : one),
      ))
        .won;
    } catch (error) {
      log.debug("Cannot route message {id} immediately: {error}", { id: message.id, error });
      return false;
    }
  }

  function buildFeeding(parts: WaitingMessage[], now: number): Statement[] {
    const last = parts.at(-1);
    if (last === undefined) return [];
    const { id, session_key, received_at } = last;
    const earlier = parts.slice(0, -1).map((part) => part.id);
    return [
      ...feedMessage(id, earlier, now, received_at < openedAt ? received_at : now),
      ...earlier.map((part) =>
        record(now, { kind: "message.merged", session_key, message_id: part, data: { into: id } })
      ),
      record(now, { kind: "message.feeding", session_key, message_id: id, data: { parts: parts.length } }),
    ];
  }
}
