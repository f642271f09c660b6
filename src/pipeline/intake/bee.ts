// Message: feeding -> bee_processed, by rules or by a run of the coordinator's engine. routed_message.ts has the transitions.
import { yieldToLoop } from "../../base/yield_to_loop.ts";
import type { Block } from "../../domain/work/block.ts";
import { faultPoint } from "../../base/fault_point.ts";
import type { BeeContext } from "../../domain/chat/bee_prompt.ts";
import { USAGE_UNKNOWN } from "../../domain/work/execution.ts";
import { joinParts } from "../../domain/chat/quiet_window.ts";
import type { RunIdentity } from "../../domain/call/run_identity.ts";
import type { Candidate } from "../../domain/chat/routing.ts";
import { insertBeeRun } from "../../store/chat/bee_run.ts";
import type { Statement } from "../../store/db/database.ts";
import { insertReservation } from "../../store/workers/budget_ledger.ts";
import { countMessageAttempt, releaseMessage } from "../../store/chat/inbound.ts";
import { type FeedingMessage, listFeeding } from "../../store/chat/inbound_feeding.ts";
import { listParts } from "../../store/chat/inbound_part.ts";
import { listCandidates } from "../../store/workers/worker.ts";
import { WAKEUP } from "../../base/wakeups.ts";
import type { Admission } from "../dispatch/admission.ts";
import { Stage, type StageServices } from "../stage/stage.ts";
import {
  buildRouting,
  dropRun,
  finishRouting,
  giveUp,
  type MessageToRoute,
  releaseAtStop,
  retryLater,
  waitForBudget,
} from "./routed_message.ts";
import { buildRoute, createAttempt, findRoute } from "./routing_rules.ts";
import { type BeeMessage, buildBeeContext } from "../../run/local/bee_briefing.ts";
import { type BeeOutcome, BeeRunner, type BeeRunnerOptions } from "../../run/local/bee_runner.ts";
import { OutcomeWriter } from "../../run/outcome_writer.ts";
import type { Interruption } from "../../domain/work/interruption.ts";

const MESSAGES_PER_ROUND = 200;
const LONG_TEXT_CHARACTERS = 32_000;
// Each run is a process that mostly waits for a model.
const RUNS_MAX = 4;
// How often a message that waits for a budget is checked.
const BLOCKED_RETRY_MS = 10_000;

interface BeeOptions extends BeeRunnerOptions, StageServices {
  timeZone: string;
  admission: Admission;
  /** When this process started. Messages that are due since before were left by an earlier process. */
  openedAt: number;
}

/** The coordinator turns each message into tasks for workers, or answers it (contract 4.3, contract 4.4). */
export class Bee {
  readonly stage: Stage;
  readonly runner: BeeRunner;
  readonly #options: BeeOptions;
  #lastTurn: Promise<void> = Promise.resolve();
  #draining = false;

  constructor(options: BeeOptions) {
    this.#options = options;
    const { db, clock } = options;
    this.runner = new BeeRunner(options, new OutcomeWriter(clock, () => db.broken !== null));
    this.stage = new Stage(options, { name: "bee", wakeup: WAKEUP.bee, step: () => this.#step() });
  }

  /** Starts no more engine runs. Runs in progress may finish. */
  drain(): void {
    this.#draining = true;
  }

  async #step(): Promise<number> {
    const { db, clock } = this.#options;
    const messages = await listFeeding(db, MESSAGES_PER_ROUND);
    if (messages.length === 0) return Infinity;
    const candidates = await listCandidates(db);
    const now = clock.now();
    const waits: number[] = [];
    // Leftover messages are routed one at a time: a message that crashes the process must not use up an attempt of others.
    for (const message of messages.filter((one) => this.#isLeftover(one))) {
      waits.push(await this.#decide(message, candidates, now));
    }
    const fresh = messages.filter((one) => !this.#isLeftover(one));
    waits.push(...await Promise.all(fresh.map((message) => this.#decide(message, candidates, now))));
    return Math.min(...waits);
  }

  /** Routes a message. Returns in how many ms there is more to do: 0 when the conversation may have another message. */
  async #decide(message: FeedingMessage, candidates: Candidate[], now: number): Promise<number> {
    const { config, db } = this.#options;
    if (this.runner.has({ message_id: message.id })) return Infinity;
    if (message.due_at > now) return message.due_at - now;
    const counted = this.#isLeftover(message);
    if (counted && !await this.#countFirst(message, now)) return 0;
    const parts = await listParts(db, message.id);
    const text = joinParts(parts);
    if (text.length > LONG_TEXT_CHARACTERS) await this.#yieldTurn();
    faultPoint("routing");
    const route = findRoute(config, message, text, candidates);
    if (route !== null) {
      // A lost guard means that the message was cleared or its worker deleted. The next round finds out.
      await db.write(buildRoute(route, message, counted, now));
      return 0;
    }
    if (counted) await db.write(releaseMessage(message.id, now));
    if (!this.#hasSlot) return Infinity;
    return await this.#prepareRun(message, { text, parts }, candidates, now);
  }

  // The message was due before this process started, so an earlier process left it.
  #isLeftover({ due_at }: FeedingMessage): boolean {
    return due_at < this.#options.openedAt;
  }

  // The end of a run wakes this stage, so waiting messages can be skipped.
  get #hasSlot(): boolean {
    return !this.#draining && this.runner.running.length < RUNS_MAX;
  }

  // An earlier process ended before this message was routed, perhaps because of it. The attempt is therefore committed first, and the
  // coordinator gives up after `max_attempts`.
  async #countFirst(message: FeedingMessage, now: number): Promise<boolean> {
    const { db, config } = this.#options;
    if (message.attempt >= config.bee.max_attempts) {
      const error = `the service ended ${message.attempt} times while routing it`;
      await this.#giveUp(message, error, now);
      return false;
    }
    return (await db.write(countMessageAttempt(message.id, message.attempt + 1))).won;
  }

  async #giveUp(message: FeedingMessage, error: string, now: number): Promise<void> {
    const failure = { failure: "server_lost" as const, error, usage: USAGE_UNKNOWN };
    await this.#options.db.write(giveUp(message, null, failure, now));
  }

  // Routing a long text takes some 20 ms. Two long texts never share a turn of the event loop.
  #yieldTurn(): Promise<void> {
    return this.#lastTurn = this.#lastTurn.then(yieldToLoop);
  }

  async #prepareRun(
    message: FeedingMessage,
    text: Pick<BeeMessage, "text" | "parts">,
    candidates: Candidate[],
    now: number,
  ): Promise<number> {
    const { config } = this.#options;
    if (message.attempt >= config.bee.max_attempts) {
      const error = `all ${message.attempt} attempts of the coordinator failed`;
      await this.#giveUp(message, error, now);
      return 0;
    }
    const context = await buildBeeContext(this.#options, { ...message, ...text }, candidates, now);
    return await this.#startRun(message, context, now);
  }

  // Reserves the budget in the batch that starts the run. While a budget is used up, the message waits (contract 14).
  #startRun(message: FeedingMessage, context: BeeContext, now: number): Promise<number> {
    const { db, config: { bee: { engine } }, admission } = this.#options;
    return admission.runExclusive(async () => {
      // Concurrent messages were checked before the first of their runs started.
      if (!this.#hasSlot) return Infinity;
      const round = await admission.startRound(now);
      const verdict = await round.judgeCoordinator({ session_key: message.session_key, engine });
      if (verdict.block !== null) return await this.#waitForBudget(message, verdict.block, now);
      const identity = createAttempt(message);
      const { targets, expected } = verdict.reservation;
      const { won } = await db.write([
        ...countMessageAttempt(message.id, identity.attempt),
        insertBeeRun({ ...identity, engine, created_at: now }),
        insertReservation(identity.execution_id, targets, expected),
      ]);
      if (!won) return 0;
      const ended = this.runner.start(
        { identity, context },
        (outcome, interruption) => this.#store(message, identity, outcome, interruption),
      );
      // A slot is free again.
      void ended.then(() => this.stage.wake());
      return Infinity;
    });
  }

  async #waitForBudget(message: FeedingMessage, { reason, until }: Block, now: number): Promise<number> {
    // A raised or lifted budget does not wake a message.
    const retryAt = Math.min(until ?? Infinity, now + BLOCKED_RETRY_MS);
    await this.#options.db.write(waitForBudget(message, reason, retryAt, now));
    return Math.max(0, retryAt - now);
  }

  async #store(
    message: FeedingMessage,
    run: RunIdentity,
    outcome: BeeOutcome,
    interruption: Interruption | null,
  ): Promise<void> {
    const { db, clock } = this.#options;
    const now = clock.now();
    const { won } = await db.write(this.#buildEnd(message, run, outcome, interruption, now));
    if (!won) await db.write(dropRun(run.execution_id, outcome.usage, now));
  }

  #buildEnd(
    message: MessageToRoute,
    { execution_id, attempt }: RunIdentity,
    outcome: BeeOutcome,
    interruption: Interruption | null,
    now: number,
  ): Statement[] {
    const { max_attempts, timeout } = this.#options.config.bee;
    if ("plan" in outcome) {
      return finishRouting(message, execution_id, buildRouting(outcome.plan), outcome.usage, now);
    }
    if (interruption === "shutdown") return releaseAtStop(message, execution_id, now);
    const late = {
      failure: "timeout" as const,
      error: `ran longer than ${timeout / 1000} s (bee.timeout)`,
    };
    const stopped = interruption?.startsWith("budget: ")
      ? { failure: "budget" as const, error: interruption.slice("budget: ".length), again: false }
      : {};
    const { failure, error, usage, again } = {
      ...outcome,
      ...(interruption === "late" ? late : {}),
      ...stopped,
    };
    const miss = { failure, error, usage };
    return again && attempt < max_attempts
      ? retryLater(message, execution_id, miss, attempt, now)
      : giveUp(message, execution_id, miss, now);
  }
}
