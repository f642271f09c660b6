import { sleep } from "../base/clock.ts";
import { createLogger } from "../base/log.ts";
import { LOG_CHUNK_MAX_BYTES, type RunLogSize } from "../domain/workers/runner.ts";
import type { ServiceClient } from "./service_client.ts";

const log = createLogger("runner");

const SEND_TIMEOUT_MS = 30_000;

interface LogOptions {
  link: ServiceClient;
  executionId: string;
  epoch: number;
  kind: "log" | "events";
  path: string;
  /** Sends the first lines without gathering. A person waits for a run that its machine started for. */
  isPrompt?: boolean;
  /** Aborts when the runner loses the run. */
  signal: AbortSignal;
}

// Gathers many small writes into one request.
const GATHER_MS = 100;

/** Sends the log of one run in parts as it grows. The service ignores repeated parts. */
export class LogSender {
  readonly #options: LogOptions;
  readonly #hurried = new AbortController();
  #sent = 0;
  #grown = false;
  /** The last part was full, so more is waiting. */
  #isFull = false;
  #sending: Promise<void> | null = null;

  constructor(options: LogOptions) {
    this.#options = options;
  }

  /** Sends the new part of the log. */
  send(): void {
    this.#grown = true;
    this.#sending ??= this.#sendParts().finally(() => {
      this.#sending = null;
      // The log may have grown after the last read.
      if (this.#grown) this.send();
    });
  }

  /** Resolves when the log was sent, or cannot be. Never throws. */
  async flush(): Promise<void> {
    this.#hurried.abort();
    this.send();
    while (this.#sending !== null) await this.#sending;
  }

  async #sendParts(): Promise<void> {
    const { link, executionId, epoch, kind, path, signal } = this.#options;
    try {
      while (this.#grown) {
        const isFirst = this.#options.isPrompt === true && this.#sent === 0;
        if (!this.#isFull && !isFirst) await sleep(link.clock, GATHER_MS, this.#hurried.signal);
        this.#grown = false;
        if (signal.aborted) return;
        const bytes = await readPart(path, this.#sent, LOG_CHUNK_MAX_BYTES);
        this.#isFull = bytes.length === LOG_CHUNK_MAX_BYTES;
        if (bytes.length === 0) continue;
        const offset = this.#sent;
        const query = `epoch=${epoch}&offset=${offset}&kind=${kind}`;
        const { value: { size } } = await link.postUntilAnswered<RunLogSize>(
          `/api/runs/${executionId}/log?${query}`,
          bytes,
          {
            timeoutMs: SEND_TIMEOUT_MS,
            signal,
            ofRun: true,
          },
        );
        const end = offset + bytes.length;
        // If the service has lost a part of the log, sending continues there. If it did not store this part, the part is skipped, because
        // repeating it would never end.
        this.#sent = size === offset ? end : Math.min(size, end);
        this.#grown = true;
      }
    } catch (error) {
      // The run continues. A beat reports when the runner has lost it.
      if (!signal.aborted) {
        log.warning("Cannot send the log of run {id}: {error}", { id: executionId, error });
      }
      this.#grown = false;
    }
  }
}

/** Reads a part of a file, which may be missing. */
export async function readPart(path: string, offset: number, maxBytes: number): Promise<Uint8Array> {
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
