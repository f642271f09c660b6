// Sends each journal event that deserves a notice once to each configured target.
import { WAKEUP, type Wakeups } from "../../base/wakeups.ts";
import type { Clock } from "../../base/clock.ts";
import {
  isWanted,
  type Notice,
  NOTICE_EVENTS,
  type NoticeRule,
  placeOfRule,
  TO_WEBHOOK,
} from "../../domain/system/notice.ts";
import { tellProgram } from "../../run/local/notice_program.ts";
import type { Database, Statement } from "../../store/db/database.ts";
import { journalRange, type JournalRow, listEvents, record } from "../../store/events/journal.ts";
import { countLeftOut, findTold, insertNotice, noteTold } from "../../store/chat/notice.ts";
import { findSetting, saveSetting } from "../../store/db/setting.ts";
import { ASIDE_MS, Stage } from "../stage/stage.ts";
import { noticeOf } from "./notice_text.ts";

const EVENTS_PER_ROUND = 20;
// Older events cause no notice: the service was down, or the rules are new.
const OLD_MS = 24 * 60 * 60_000;

interface NoticesOptions {
  db: Database;
  clock: Clock;
  wakeups: Wakeups;
  rules: readonly NoticeRule[];
  umask: number;
}

/**
 * Creates the stage that sends notices to the targets of `notices:`, each once. A conversation gets a message, a webhook the
 * event `notice.raised`, and a program the event on its standard input. The cursor in the journal survives restarts (contract
 * 11).
 */
export function createNotices(options: NoticesOptions): Stage {
  const { db, clock, wakeups, rules } = options;
  let cursor = -1;
  return new Stage({ name: "notices", wakeup: WAKEUP.journal, clock, wakeups, pauseMs: ASIDE_MS, step });

  async function step(signal: AbortSignal): Promise<number> {
    if (rules.length === 0) return Infinity;
    if (cursor === -1) cursor = await begin();
    const events = await listEvents(db, cursor, EVENTS_PER_ROUND, { kinds: [...NOTICE_EVENTS] });
    for (const event of events) {
      if (signal.aborted) return Infinity;
      await tell(event, signal);
      cursor = event.seq;
    }
    return events.length === EVENTS_PER_ROUND ? 0 : Infinity;
  }

  // The first start with rules skips all earlier events.
  async function begin(): Promise<number> {
    const known = await findSetting(db, "notices_cursor");
    if (known !== null) return Number(known);
    const { last } = await journalRange(db);
    await db.write([saveSetting("notices_cursor", String(last))]);
    return last;
  }

  async function tell(event: JournalRow, signal: AbortSignal): Promise<void> {
    const now = clock.now();
    const notice = event.at < now - OLD_MS ? null : await noticeOf(db, event);
    const statements: Statement[] = [saveSetting("notices_cursor", String(event.seq))];
    const places = new Set<string>();
    for (const rule of notice === null ? [] : rules) {
      const place = placeOfRule(rule);
      if (notice === null || places.has(place) || !isWanted(rule, notice)) continue;
      places.add(place);
      statements.push(...await tellAt(rule, notice, event, signal));
    }
    await db.write(statements);
  }

  async function tellAt(
    rule: NoticeRule,
    notice: Notice,
    event: JournalRow,
    signal: AbortSignal,
  ): Promise<Statement[]> {
    const now = clock.now();
    const place = placeOfRule(rule);
    const told = await findTold(db, place, notice);
    if (told !== null && told.at > now - rule.every) return [countLeftOut(place, notice)];
    const suppressed = told?.suppressed_count ?? 0;
    const since = told === null ? "" : new Date(told.at).toISOString();
    const content = suppressed === 0
      ? notice.content
      : `${notice.content}\n${suppressed} similar notices since ${since}.`;
    const data = {
      on: notice.kind,
      to: rule.to ?? "",
      about: notice.about,
      text: content,
      left_out: suppressed,
      ...keysOf(event),
    };
    const statements = [noteTold(place, notice, now), record(now, { kind: "notice.raised", data })];
    if (rule.program !== undefined) {
      const body = { type: notice.kind, timestamp: new Date(event.at).toISOString(), data };
      await tellProgram(rule.program, JSON.stringify(body), options.umask, signal);
    } else if (rule.to !== undefined && !rule.to.startsWith(TO_WEBHOOK)) {
      const said = { kind: notice.kind, session_key: rule.to, message_id: "", about: notice.about, content };
      statements.push(...insertNotice(said, now));
    }
    return statements;
  }
}

function keysOf({ session_key, worker_id, task_id, execution_id, message_id }: JournalRow) {
  return { session_key, worker_id, task_id, execution_id, message_id };
}
