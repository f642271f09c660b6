import { sleep } from "../base/clock.ts";
import { logger } from "../base/log.ts";
import type { RunReport } from "../domain/workers/runner.ts";
import type { Link } from "./service_client.ts";

const log = logger("runner");

const SEND_TIMEOUT_MS = 30_000;
const PER_REQUEST_MAX = 50;

/** A report without its number. */
type Unnumbered<R> = R extends RunReport ? Omit<R, "no"> : never;

// What comes so soon after the first goes with it.
const GATHER_MS = 50;

type Kind = RunReport["kind"];

// Of these only the latest word counts.
const LATEST: readonly Kind[] = ["usage", "step"];
// What the end of a run says, too, or what nobody asks for any more after it.
const OVER_WITH_THE_END: readonly Kind[] = ["started", "step"];

/** Of which run reports are sent. */
interface ReportOptions {
  link: Link;
  executionId: string;
  epoch: number;
  /** Aborts when the run belongs to the runner no longer. */
  signal: AbortSignal;
}

/** Sends what a run says while it goes on, numbered and in order; what was sent twice counts once. */
export class ReportSender {
  readonly #options: ReportOptions;
  #waiting: Unnumbered<RunReport>[] = [];
  #last = 0;
  #sending: Promise<void> | null = null;
  readonly #hurried = new AbortController();

  constructor(options: ReportOptions) {
    this.#options = options;
  }

  /** Sends a report as soon as those before it are stored. */
  add(report: Unnumbered<RunReport>): void {
    const { kind } = report;
    if (LATEST.includes(kind)) this.#waiting = this.#waiting.filter((one) => one.kind !== kind);
    this.#waiting.push(report);
    this.#begin();
  }

  #begin(): void {
    this.#sending ??= this.#send().finally(() => {
      this.#sending = null;
      // One may have come after the last look.
      if (this.#waiting.length > 0) this.#begin();
    });
  }

  /** The run has ended. Resolves when all was sent that its end does not say, or cannot be. Never throws. */
  async settled(): Promise<void> {
    this.#waiting = this.#waiting.filter(({ kind }) => !OVER_WITH_THE_END.includes(kind));
    this.#hurried.abort();
    while (this.#sending !== null) await this.#sending;
  }

  async #send(): Promise<void> {
    const { link, executionId, epoch, signal } = this.#options;
    try {
      while (this.#waiting.length > 0) {
        await sleep(link.clock, GATHER_MS, this.#hurried.signal);
        if (signal.aborted) return void (this.#waiting = []);
        if (this.#waiting.length === 0) return;
        const events = this.#waiting.splice(0, PER_REQUEST_MAX).map((report) => ({
          ...report,
          no: ++this.#last,
        }));
        await link.insist(`/api/runs/${executionId}/events`, { epoch, events }, {
          timeoutMs: SEND_TIMEOUT_MS,
          signal,
          ofRun: true,
        });
      }
    } catch (error) {
      if (!signal.aborted) {
        log.warning("Reports of run {id} were refused: {error}", { id: executionId, error });
      }
      this.#waiting = [];
    }
  }
}
