// Message: failed (waiting) -> sent, or failed permanently. Part: sending -> sent, or waiting again.
import { type Backoff, backoffMs } from "../../base/backoff.ts";
import { faultPoint } from "../../base/fault_point.ts";
import { createLogger } from "../../base/log.ts";
import { buildChoices } from "../../domain/call/choice.ts";
import type { JournalEntry } from "../../domain/system/journal.ts";
import { parseAnsweredId, parsePlace } from "../../domain/chat/platform.ts";
import { DeliveryError, type Part, type Platform } from "../../platform/platform.ts";
import type { Statement } from "../../store/db/database.ts";
import { recordTransition } from "../../store/events/journal.ts";
import { deferOutbound, finishOutbound } from "../../store/chat/outbound.ts";
import {
  delayOutbound,
  finishPart,
  insertParts,
  listDueReplies,
  listParts,
  listUnknownPlatformReplies,
  type OutboundPart,
  releasePart,
  releaseParts,
  sendPart,
  type WaitingOutbound,
} from "../../store/chat/outbound_part.ts";
import { WAKEUP } from "../../base/wakeups.ts";
import { PlatformCooldowns } from "./platform_cooldowns.ts";
import { Stage, type StageServices, waitBriefly } from "../stage/stage.ts";

const log = createLogger("outbox");
const UNCONNECTED_PER_ROUND = 50;
// Conversations of one platform that are served concurrently.
const SENDING_MAX = 16;
// A reply waits this long for its platform before the outbox gives up (contract 10).
const HELD_MAX_MS = 7 * 24 * 60 * 60 * 1000;
/** The first send and one retry (contract 10, reliability PLT-2). */
const SENDS_MAX = 2;
// Delay after a failed database write.
const RETRY: Backoff = { firstMs: 1_000, lastMs: 60_000 };

interface OutboxOptions extends StageServices {
  platforms: readonly Platform[];
}

/**
 * Delivers messages to platforms: in order within a conversation, and independently per platform (contract 10.3). A stored message on the
 * local platform is delivered already.
 */
export class Outbox {
  readonly stage: Stage;
  readonly cooldowns: PlatformCooldowns;
  readonly #options: OutboxOptions;
  readonly #names: string[];
  /** Session keys that are being served, by platform. */
  readonly #busy = new Map<string, Set<string>>();
  /** Ids of the messages that are being sent. Session keys would not do, because a conversation can get a new key meanwhile. */
  readonly #sendingIds = new Set<string>();
  readonly #sending = new Set<Promise<void>>();
  #isRecovered = false;
  #failures = 0;

  constructor(options: OutboxOptions) {
    const { clock, platforms } = options;
    this.#options = options;
    this.#names = platforms.map(({ name }) => name);
    this.cooldowns = new PlatformCooldowns(clock);
    this.stage = new Stage(options, {
      name: "outbox",
      wakeup: WAKEUP.outbox,
      step: (signal) => this.#step(signal),
    });
  }

  /** Resolves when no delivery is in flight, or after two seconds. The next start handles deliveries that are still open. */
  waitForDeliveries(): Promise<void> {
    return waitBriefly(this.#sending);
  }

  async #step(signal: AbortSignal): Promise<number> {
    const { db, clock, platforms } = this.#options;
    if (!this.#isRecovered) await db.write([releaseParts()]);
    this.#isRecovered = true;
    const now = clock.now();
    const unconnected = await listUnknownPlatformReplies(db, this.#names, now, UNCONNECTED_PER_ROUND);
    for (const message of unconnected) {
      faultPoint("outbox.post");
      const reason = `no platform called ${message.platform} is connected`;
      await db.write(giveUp(message, reason, message.attempt + 1, now));
    }
    for (const platform of platforms) {
      if (!signal.aborted) await this.#serve(platform, now);
    }
    return unconnected.length === UNCONNECTED_PER_ROUND ? 0 : Infinity;
  }

  async #serve(platform: Platform, now: number): Promise<void> {
    const busy = this.#busy.get(platform.name) ?? new Set();
    this.#busy.set(platform.name, busy);
    const limit = SENDING_MAX - busy.size;
    if (limit <= 0 || this.cooldowns.findEnd(platform.name) !== null) return;
    const waiting = await listDueReplies(this.#options.db, platform.name, { now, busy: [...busy], limit });
    for (const message of waiting) {
      if (this.#sendingIds.has(message.id)) continue;
      this.#sendingIds.add(message.id);
      busy.add(message.session_key);
      const sending = this.#deliver(platform, message).catch((error) => this.#pauseAfterError(message, error))
        .finally(() => {
          busy.delete(message.session_key);
          this.#sendingIds.delete(message.id);
          this.#sending.delete(sending);
          this.stage.wake();
        });
      this.#sending.add(sending);
    }
  }

  // The database write failed. The next try resumes here.
  async #pauseAfterError({ id }: WaitingOutbound, error: unknown): Promise<void> {
    log.error("Cannot deliver message {id} now: {error}", { id, error });
    await new Promise((resolve) => setTimeout(resolve, backoffMs(RETRY, ++this.#failures)));
  }

  async #deliver(platform: Platform, message: WaitingOutbound): Promise<void> {
    const { clock, db } = this.#options;
    const { chat } = parsePlace(message.session_key);
    const cooldownEnd = this.cooldowns.findEnd(platform.name, chat);
    if (cooldownEnd !== null) return await this.#postpone(message, message.error, cooldownEnd);
    const { parts, statements } = await this.#prepareParts(platform, message);
    const open = parts.filter((part) => part.sent_at === null);
    if (open.length === 0) {
      await db.write(giveUp(message, "the message has no content", message.attempt + 1, clock.now()));
      return;
    }
    for (const part of open) {
      if (part.unanswered >= SENDS_MAX) {
        const reason = `${platform.name} did not respond, so the message may have arrived`;
        await db.write(giveUp(message, reason, message.attempt + 1, clock.now()));
        return;
      }
      if (part.unanswered > 0 && !await this.#isReachable(platform, message)) return;
      const before = part === open[0] ? statements : [];
      if (!await this.#send(platform, message, { part, before, isLast: part === open.at(-1) })) return;
    }
    this.#failures = 0;
  }

  // The second send is the last one. A silent platform must not use it up for every waiting reply, so the outbox tests the connection
  // first.
  async #isReachable(platform: Platform, message: WaitingOutbound): Promise<boolean> {
    try {
      await platform.test();
      return true;
    } catch (error) {
      // Any other error still is an answer: the platform is reachable.
      if (!(error instanceof DeliveryError)) return true;
      await this.#postpone(message, error.message, this.cooldowns.start(platform.name, undefined, null));
      return false;
    }
  }

  /** Returns the parts of a reply. A new reply also returns the statements that store its parts in the commit before the first send. */
  async #prepareParts(
    platform: Platform,
    { id, content, media, is_cut }: WaitingOutbound,
  ): Promise<{ parts: OutboundPart[]; statements: Statement[] }> {
    const { db } = this.#options;
    if (is_cut === 0) {
      const bodies = platform.cut(content, JSON.parse(media)).map((part) => JSON.stringify(part));
      return { parts: bodies.map(createPart), statements: insertParts(id, bodies) };
    }
    const stored = await listParts(db, id);
    // Only this outbox sends the part. An open `sending_at` therefore means that its outcome was not stored, and the part may have
    // arrived (reliability PLT-2).
    const unknown = stored.find((part) => part.sending_at !== null);
    if (unknown === undefined) return { parts: stored, statements: [] };
    await db.write(releasePart(id, unknown.number, true));
    return { parts: await listParts(db, id), statements: [] };
  }

  /** Sends one part. Returns whether the next part may follow. */
  async #send(
    platform: Platform,
    message: WaitingOutbound,
    { part, before, isLast }: { part: OutboundPart; before: Statement[]; isLast: boolean },
  ): Promise<boolean> {
    const { db, clock } = this.#options;
    const { id } = message;
    // After this commit the part counts as possibly delivered.
    if (!(await db.write([...before, ...sendPart(id, part.number, clock.now())])).won) return false;
    const place = parsePlace(message.session_key);
    let sentAs: string;
    try {
      sentAs = await platform.deliver({
        key: `${id}-${part.number}`,
        ...place,
        answers: parseAnsweredId(message.answers, place.chat),
        part: JSON.parse(part.body) as Part,
        choices: isLast ? buildChoices(message.question_id, JSON.parse(message.options)) : [],
        ...(part.unanswered > 0 || message.is_resent === 1 ? { sentBefore: message.created_at } : {}),
        isUnanswered: part.unanswered > 0,
      });
    } catch (error) {
      faultPoint("outbox.post");
      await this.#handleFailure(platform, message, part, error);
      return false;
    }
    faultPoint("outbox.post");
    this.cooldowns.clear(platform.name, place.chat);
    const now = clock.now();
    const sent: JournalEntry = { kind: "message.sent", ...pickKeys(message), data: { outbound_id: id } };
    await db.write([
      ...finishPart(id, part.number, sentAs, now),
      ...(isLast ? recordTransition(finishOutbound(id, now), now, sent) : []),
    ]);
    return true;
  }

  async #handleFailure(
    platform: Platform,
    message: WaitingOutbound,
    part: OutboundPart,
    error: unknown,
  ): Promise<void> {
    const { db, clock } = this.#options;
    const why = error instanceof DeliveryError ? error.why : "refused";
    const reason = error instanceof Error ? error.message : String(error);
    log.warning("Cannot deliver message {id}: {reason}", { id: message.id, reason });
    const release = releasePart(message.id, part.number, why === "unanswered");
    const now = clock.now();
    if (why === "refused") {
      await db.write([...release, ...giveUp(message, reason, message.attempt + 1, now)]);
      return;
    }
    await db.write(release);
    if (why === "unanswered") return;
    const { chat } = parsePlace(message.session_key);
    const isChat = error instanceof DeliveryError && error.scope === "chat";
    const retryAfterMs = error instanceof DeliveryError ? error.retryAfterMs : null;
    const until = this.cooldowns.start(platform.name, isChat ? chat : undefined, retryAfterMs);
    await this.#postpone(message, reason, until);
  }

  async #postpone(message: WaitingOutbound, reason: string, until: number): Promise<void> {
    const { db, clock } = this.#options;
    const now = clock.now();
    if (now - message.since >= HELD_MAX_MS) {
      const reasonText = `${reason} (after ${HELD_MAX_MS / 86_400_000} days)`;
      await db.write(giveUp(message, reasonText, message.attempt, now));
      return;
    }
    const cooldownEnd = delayOutbound(message.id, reason, until);
    // Records one event for each reason, not for each retry of a long outage.
    await db.write(
      message.error === reason
        ? cooldownEnd
        : recordTransition(cooldownEnd, now, buildUndelivered(message, reason)),
    );
  }
}

function createPart(body: string, number: number): OutboundPart {
  return { number, body, unanswered: 0, sending_at: null, sent_at: null };
}

type MessageKeys = Pick<WaitingOutbound, "id" | "session_key" | "message_id" | "attempt">;

function pickKeys({ session_key, message_id }: MessageKeys) {
  return { session_key, message_id };
}

function buildUndelivered(message: MessageKeys, reason: string, givenUp = false): JournalEntry {
  const { id, attempt } = message;
  return {
    kind: "message.undelivered",
    ...pickKeys(message),
    data: { outbound_id: id, reason, attempt, given_up: givenUp },
  };
}

function giveUp(message: MessageKeys, reason: string, attempt: number, now: number): Statement[] {
  return recordTransition(
    deferOutbound(message.id, reason, null),
    now,
    buildUndelivered({ ...message, attempt }, reason, true),
  );
}
