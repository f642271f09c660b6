import { sleep } from "../base/clock.ts";
import { logger } from "../base/log.ts";
import { LOG_CHUNK_MAX_BYTES, type RunLogged } from "../domain/workers/runner.ts";
import type { Link } from "./service_client.ts";

const log = logger("runner");

const SEND_TIMEOUT_MS = 30_000;

/** Where a log lies, and which of a run's it is. */
interface LogOptions {
  link: Link;
  executionId: string;
  epoch: number;
  kind: "log" | "events";
  path: string;
  /** Aborts when the run belongs to the runner no longer. */
  signal: AbortSignal;
}

// An agent that says many small things one after the other is not many requests.
const GATHER_MS = 100;

/** Sends the log of one run as it grows, part by part; what was sent twice is there once. */
export class LogSender {
  readonly #options: LogOptions;
  readonly #hurried = new AbortController();
  #sent = 0;
  #grown = false;
  /** The last part was as large as one may be: there is more behind it. */
  #isFull = false;
  #sending: Promise<void> | null = null;

  constructor(options: LogOptions) {
    this.#options = options;
  }

  /** There is more of it. */
  grew(): void {
    this.#grown = true;
    this.#sending ??= this.#send().finally(() => {
      this.#sending = null;
      // It may have grown after the last look.
      if (this.#grown) this.grew();
    });
  }

  /** Resolves when all of it was sent, or cannot be. Never throws. */
  async settled(): Promise<void> {
    this.#hurried.abort();
    this.grew();
    while (this.#sending !== null) await this.#sending;
  }

  async #send(): Promise<void> {
    const { link, executionId, epoch, kind, path, signal } = this.#options;
    try {
      while (this.#grown) {
        if (!this.#isFull) await sleep(link.clock, GATHER_MS, this.#hurried.signal);
        this.#grown = false;
        if (signal.aborted) return;
        const bytes = await partOf(path, this.#sent, LOG_CHUNK_MAX_BYTES);
        this.#isFull = bytes.length === LOG_CHUNK_MAX_BYTES;
        if (bytes.length === 0) continue;
        const offset = this.#sent;
        const query = `epoch=${epoch}&offset=${offset}&kind=${kind}`;
        const { value: { size } } = await link.insist<RunLogged>(
          `/api/runs/${executionId}/log?${query}`,
          bytes,
          {
            timeoutMs: SEND_TIMEOUT_MS,
            signal,
            ofRun: true,
          },
        );
        const end = offset + bytes.length;
        // Where a log was lost there, it begins again; an answer that takes nothing in would be asked for ever.
        this.#sent = size === offset ? end : Math.min(size, end);
        this.#grown = true;
      }
    } catch (error) {
      // The run goes on; whether it still belongs here, a beat says.
      if (!signal.aborted) {
        log.warning("The log of run {id} cannot be sent: {error}", { id: executionId, error });
      }
      this.#grown = false;
    }
  }
}

async function partOf(path: string, offset: number, maxBytes: number): Promise<Uint8Array> {
  const file = await Deno.open(path, { read: true }).catch(() => null);
  if (file === null) return new Uint8Array();
  try {
    await file.seek(offset, Deno.SeekMode.Start);
    const part = new Uint8Array(maxBytes);
    let size = 0;
    for (let count: number | null = 0; count !== null && size < maxBytes; size += count ?? 0) {
      count = await file.read(part.subarray(size));
    }
    return part.subarray(0, size);
  } finally {
    file.close();
  }
}
