import { sleep } from "../base/clock.ts";
import { createLogger } from "../base/log.ts";
import type { RunReport } from "../domain/workers/runner.ts";
import type { ServiceClient } from "./service_client.ts";

const log = createLogger("runner");

const SEND_TIMEOUT_MS = 30_000;
const PER_REQUEST_MAX = 50;

/** A report without its number. */
type Unnumbered<R> = R extends RunReport ? Omit<R, "no"> : never;

// Gathers reports into one request.
const GATHER_MS = 50;

type Kind = RunReport["kind"];

// Of these kinds, only the latest report is kept.
const LATEST: readonly Kind[] = ["usage", "step"];
// Reports that the end of a run contains or makes obsolete.
const OBSOLETE_AT_END: readonly Kind[] = ["started", "step"];

interface ReportOptions {
  link: ServiceClient;
  executionId: string;
  epoch: number;
  /** Aborts when the runner loses the run. */
  signal: AbortSignal;
}

/** Sends the reports of a run in order, each with a number. The service ignores a report that it already has. */
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
    this.#startSending();
  }

  #startSending(): void {
    this.#sending ??= this.#send().finally(() => {
      this.#sending = null;
      // A report may have been added after the last check.
      if (this.#waiting.length > 0) this.#startSending();
    });
  }

  /** Drops reports that the end of the run replaces. Resolves when the others were sent, or cannot be. Never throws. */
  async flush(): Promise<void> {
    this.#waiting = this.#waiting.filter(({ kind }) => !OBSOLETE_AT_END.includes(kind));
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
        await link.postUntilAnswered(`/api/runs/${executionId}/events`, { epoch, events }, {
          timeoutMs: SEND_TIMEOUT_MS,
          signal,
          ofRun: true,
        });
      }
    } catch (error) {
      if (!signal.aborted) {
        log.warning("Cannot send the reports of run {id}: {error}", { id: executionId, error });
      }
      this.#waiting = [];
    }
  }
}
