// Sends each journal event that deserves a notice once to each configured target.
import { WAKEUP } from "../../base/wakeups.ts";
import { pickRunKeys } from "../../domain/call/run_identity.ts";
import {
  getRuleKey,
  isWanted,
  type Notice,
  NOTICE_EVENTS,
  type NoticeRule,
  TO_WEBHOOK,
} from "../../domain/system/notice.ts";
import { runNoticeProgram } from "../../run/local/notice_program.ts";
import type { Statement } from "../../store/db/database.ts";
import { type JournalRow, listEvents, readJournalRange, record } from "../../store/events/journal.ts";
import { countSuppressedNotice, findLastNotice, insertNotice, storeNotice } from "../../store/chat/notice.ts";
import { findSetting, storeSetting } from "../../store/db/setting.ts";
import { ASIDE_MS, Stage, type StageServices } from "../stage/stage.ts";
import { buildNotice } from "./notice_text.ts";

const EVENTS_PER_ROUND = 20;
// Older events cause no notice: the service was down, or the rules are new.
const OLD_MS = 24 * 60 * 60_000;

interface NoticesOptions extends StageServices {
  rules: readonly NoticeRule[];
  umask: number;
}

/**
 * Creates the stage that sends notices to the targets of `notices:`, each once. A conversation gets a message, a webhook the event
 * `notice.raised`, and a program the event on its standard input. The cursor in the journal survives restarts (contract 11).
 */
export function createNotices(options: NoticesOptions): Stage {
  const { db, clock, rules } = options;
  let cursor = -1;
  return new Stage(options, { name: "notices", wakeup: WAKEUP.journal, pauseMs: ASIDE_MS, step });

  async function step(signal: AbortSignal): Promise<number> {
    if (rules.length === 0) return Infinity;
    if (cursor === -1) cursor = await findCursor();
    const events = await listEvents(db, cursor, EVENTS_PER_ROUND, { kinds: [...NOTICE_EVENTS] });
    for (const event of events) {
      if (signal.aborted) return Infinity;
      await notify(event, signal);
      cursor = event.seq;
    }
    return events.length === EVENTS_PER_ROUND ? 0 : Infinity;
  }

  // The first start with rules skips all earlier events.
  async function findCursor(): Promise<number> {
    const stored = await findSetting(db, "notices_cursor");
    if (stored !== null) return Number(stored);
    const { last } = await readJournalRange(db);
    await db.write([storeSetting("notices_cursor", String(last))]);
    return last;
  }

  async function notify(event: JournalRow, signal: AbortSignal): Promise<void> {
    const now = clock.now();
    const notice = event.at < now - OLD_MS ? null : await buildNotice(db, event);
    const statements: Statement[] = [storeSetting("notices_cursor", String(event.seq))];
    const targets = new Set<string>();
    for (const rule of notice === null ? [] : rules) {
      const target = getRuleKey(rule);
      if (notice === null || targets.has(target) || !isWanted(rule, notice)) continue;
      targets.add(target);
      statements.push(...await notifyTarget(rule, notice, event, signal));
    }
    await db.write(statements);
  }

  async function notifyTarget(
    rule: NoticeRule,
    notice: Notice,
    event: JournalRow,
    signal: AbortSignal,
  ): Promise<Statement[]> {
    const now = clock.now();
    const target = getRuleKey(rule);
    const previous = await findLastNotice(db, target, notice);
    if (previous !== null && previous.at > now - rule.every) return [countSuppressedNotice(target, notice)];
    const suppressed = previous?.suppressed_count ?? 0;
    const since = previous === null ? "" : new Date(previous.at).toISOString();
    const content = suppressed === 0
      ? notice.content
      : `${notice.content}\n${suppressed} similar notices since ${since}.`;
    const data = {
      on: notice.kind,
      to: rule.to ?? "",
      about: notice.about,
      text: content,
      left_out: suppressed,
      ...pickRunKeys(event),
    };
    const statements = [storeNotice(target, notice, now), record(now, { kind: "notice.raised", data })];
    if (rule.program !== undefined) {
      const body = { type: notice.kind, timestamp: new Date(event.at).toISOString(), data };
      await runNoticeProgram(rule.program, JSON.stringify(body), options.umask, signal);
    } else if (rule.to !== undefined && !rule.to.startsWith(TO_WEBHOOK)) {
      const message = {
        kind: notice.kind,
        session_key: rule.to,
        message_id: "",
        about: notice.about,
        content,
      };
      statements.push(...insertNotice(message, now));
    }
    return statements;
  }
}
