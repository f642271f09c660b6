// Shows work in progress on platforms: a typing sign first, then a message that is edited and finally deleted.
import { WAKEUP } from "../../base/wakeups.ts";
import { createLogger } from "../../base/log.ts";
import type { RecentActivity } from "../../base/recent_activity.ts";
import { parseAnsweredId, parsePlace } from "../../domain/chat/platform.ts";
import { computeProgressDueMs, formatProgress, TYPING_EVERY_MS } from "../../domain/work/progress.ts";
import { DeliveryError, type Platform, type Progress } from "../../platform/platform.ts";
import {
  type AwaitedWork,
  deleteProgress,
  listAwaitedWork,
  listProgress,
  type ProgressMessage,
  storeProgress,
} from "../../store/work/progress.ts";
import type { PlatformCooldowns } from "./platform_cooldowns.ts";
import { Stage, type StageServices } from "../stage/stage.ts";

const log = createLogger("progress");
/** The sign must appear within a second (contract 10.6). */
const POLL_MS = 500;
const CONVERSATIONS_PER_ROUND = 200;

interface ProgressOptions extends StageServices {
  /** Platforms that can show progress. */
  platforms: readonly Platform[];
  steps: RecentActivity;
  /** The cooldowns of the outbox. They apply to progress messages, too. */
  cooldowns: PlatformCooldowns;
}

/** The work in progress for one conversation. */
interface ConversationProgress {
  platform: Platform;
  sessionKey: string;
  work: AwaitedWork[];
  shown: ProgressMessage | null;
}

/** Shows work in progress on every platform that supports it. No other component depends on it (contract 10.6). */
export class ProgressSigns {
  readonly stage: Stage;
  readonly #options: ProgressOptions;
  readonly #busy = new Set<string>();
  /** When the typing sign was sent last, by conversation. */
  readonly #signedAt = new Map<string, number>();

  constructor(options: ProgressOptions) {
    this.#options = options;
    this.stage = new Stage(options, {
      name: "progress",
      wakeup: WAKEUP.progress,
      pollMs: POLL_MS,
      step: () => this.#step(),
    });
  }

  async #step(): Promise<number> {
    const { db, clock, platforms } = this.#options;
    const names = platforms.map(({ name }) => name);
    const [working, shown] = await Promise.all([
      listAwaitedWork(db, names, clock.now(), CONVERSATIONS_PER_ROUND),
      listProgress(db, names, CONVERSATIONS_PER_ROUND),
    ]);
    const keys = new Set([...working, ...shown].map((one) => one.session_key));
    for (const key of this.#signedAt.keys()) if (!keys.has(key)) this.#signedAt.delete(key);
    for (const sessionKey of keys) {
      const work = working.filter((one) => one.session_key === sessionKey);
      const message = shown.find((one) => one.session_key === sessionKey) ?? null;
      const platform = platforms.find(({ name }) => name === (work[0] ?? message)?.platform);
      if (platform !== undefined) this.#show({ platform, sessionKey, work, shown: message });
    }
    return Infinity;
  }

  // Sends in the background, one request per conversation at a time, so that a slow platform delays no other.
  #show(current: ConversationProgress): void {
    const { platform, sessionKey } = current;
    const { cooldowns } = this.#options;
    const { chat } = parsePlace(sessionKey);
    if (this.#busy.has(sessionKey) || cooldowns.findEnd(platform.name, chat) !== null) return;
    const next = this.#planNext(current);
    if (next === null) return;
    this.#busy.add(sessionKey);
    void next().catch((error) => {
      log.info("Cannot show progress on {platform}: {error}", { platform: platform.name, error });
      if (!(error instanceof DeliveryError) || !["limited", "unreachable"].includes(error.why)) return;
      cooldowns.start(platform.name, error.scope === "chat" ? chat : undefined, error.retryAfterMs);
    }).finally(() => this.#busy.delete(sessionKey));
  }

  #planNext(current: ConversationProgress): (() => Promise<void>) | null {
    const { work, shown, sessionKey } = current;
    const [first] = work;
    const now = this.#options.clock.now();
    if (first === undefined) return shown === null ? null : () => this.#remove(current, shown);
    // A waiting reply goes first.
    if (work.some(({ replying }) => replying === 1)) return null;
    const runs = work.filter(({ execution_id }) => execution_id !== "");
    const text = formatProgress(
      runs.map(({ worker, execution_id }) => ({ worker, steps: this.#options.steps.list(execution_id) })),
    );
    const since = Math.min(...work.map((one) => one.since));
    if (computeProgressDueMs({ since, isDirect: first.is_direct === 1, text }, shown, now) === 0) {
      return () => this.#sendText(current, text);
    }
    if (now - (this.#signedAt.get(sessionKey) ?? -Infinity) < TYPING_EVERY_MS) return null;
    this.#signedAt.set(sessionKey, now);
    return async () => void await this.#send(current, { sentAs: "", text: null });
  }

  async #sendText(current: ConversationProgress, text: string): Promise<void> {
    const { db, clock } = this.#options;
    const { sessionKey, platform, shown } = current;
    const row = { session_key: sessionKey, platform: platform.name, text, edited_at: clock.now() };
    const before = { sent_as: shown?.sent_as ?? "", edits: (shown?.edits ?? -1) + 1 };
    // The row is stored before the message is sent, so that a crash never causes a second message.
    await db.write([storeProgress({ ...row, ...before })]);
    if (shown !== null && before.sent_as === "") return;
    const sentAs = await this.#send(current, { sentAs: before.sent_as, text });
    if (shown === null) await db.write([storeProgress({ ...row, ...before, sent_as: sentAs })]);
  }

  async #remove(current: ConversationProgress, { sent_as, session_key }: ProgressMessage): Promise<void> {
    try {
      if (sent_as !== "") await this.#send(current, { sentAs: sent_as, text: "" });
    } catch (error) {
      // Any other error would repeat.
      if (error instanceof DeliveryError && ["limited", "unreachable"].includes(error.why)) throw error;
    }
    await this.#options.db.write([deleteProgress(session_key)]);
  }

  #send(
    { platform, sessionKey, work }: ConversationProgress,
    progress: Pick<Progress, "sentAs" | "text">,
  ): Promise<string> {
    const place = parsePlace(sessionKey);
    const answers = parseAnsweredId(work[0]?.answers, place.chat);
    const send = platform.progress?.({ ...place, answers, ...progress });
    return send ?? Promise.resolve("");
  }
}
