import type { EngineRun } from "./engine.ts";
import type { TurnRequest } from "./launch.ts";
import type { AgentEvent } from "./protocol/adapter.ts";

// An engine that waits for the end of a rate limit occupies a slot. A postponed task does not.
const LIMIT_WAIT_MAX_MS = 60_000;

/** Ends a turn early that resumed the wrong session or waits for a rate limit. Records whether the turn had finished before that. */
export class EarlyExit {
  /** Aborts at the final event. */
  readonly finished = new AbortController();
  /** Aborts when the turn must end. */
  readonly signal: AbortSignal;
  openedOtherSession = false;
  /** Whether the outcome is valid, although the service ended the process. */
  wasFinished = false;
  readonly #run: EngineRun;
  readonly #request: TurnRequest;
  readonly #useless = new AbortController();
  #limit: ReturnType<typeof setTimeout> | undefined;
  #ended = false;

  constructor(run: EngineRun, request: TurnRequest) {
    this.#run = run;
    this.#request = request;
    this.signal = AbortSignal.any([run.signal, this.#useless.signal]);
  }

  event(event: AgentEvent): void {
    if (event.kind === "session") this.#checkSession(event.id ?? this.#request.sessionId);
    else if (event.kind === "done") this.finished.abort();
    if (this.#ended) return;
    if (event.kind === "failure" && event.failure.kind === "rate_limited") {
      this.#limit ??= setTimeout(() => this.#useless.abort(), LIMIT_WAIT_MAX_MS);
    } else if (event.kind !== "notice" && event.kind !== "windows" && event.kind !== "usage") {
      this.#clearLimit();
    }
  }

  /** Called at the end of the turn. Later events do not change `wasFinished`. */
  end(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#clearLimit();
    this.wasFinished = this.finished.signal.aborted ||
      this.#useless.signal.aborted && !this.#run.signal.aborted;
  }

  #checkSession(id: string): void {
    if (!this.#request.resume || id === this.#request.sessionId) return this.#run.onSession(id);
    this.openedOtherSession = true;
    this.#useless.abort();
  }

  #clearLimit(): void {
    clearTimeout(this.#limit);
    this.#limit = undefined;
  }
}
