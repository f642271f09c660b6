import type { AgentEvent } from "./protocol/adapter.ts";
import type { Start } from "./launch.ts";
import type { EngineRun } from "./engine.ts";

// An engine that waits for the end of a rate limit occupies a slot: the task can wait without one.
const LIMIT_WAIT_MAX_MS = 60_000;

/** Ends a process that has become useless, and knows whether it was done before. */
export class Watch {
  readonly finished = new AbortController();
  readonly signal: AbortSignal;
  strayed = false;
  /** The outcome of the process counts, although we ended it. */
  left = false;
  readonly #run: EngineRun;
  readonly #start: Start;
  readonly #useless = new AbortController();
  #limit: ReturnType<typeof setTimeout> | undefined;
  #ended = false;

  constructor(run: EngineRun, start: Start) {
    this.#run = run;
    this.#start = start;
    this.signal = AbortSignal.any([run.signal, this.#useless.signal]);
  }

  event(event: AgentEvent): void {
    if (event.kind === "session") this.#session(event.id ?? this.#start.sessionId);
    else if (event.kind === "done") this.finished.abort();
    if (this.#ended) return;
    if (event.kind === "failure" && event.failure.kind === "rate_limited") {
      this.#limit ??= setTimeout(() => this.#useless.abort(), LIMIT_WAIT_MAX_MS);
    } else if (event.kind !== "notice" && event.kind !== "windows" && event.kind !== "usage") {
      this.#forgetLimit();
    }
  }

  /** The process has ended or is being ended: events from here on do not change its outcome. */
  end(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#forgetLimit();
    this.left = this.finished.signal.aborted || this.#useless.signal.aborted && !this.#run.signal.aborted;
  }

  #session(id: string): void {
    if (!this.#start.resume || id === this.#start.sessionId) return this.#run.onSession(id);
    this.strayed = true;
    this.#useless.abort();
  }

  #forgetLimit(): void {
    clearTimeout(this.#limit);
    this.#limit = undefined;
  }
}
