// Sends requests from a runner to its service over HTTPS. The service never connects to a runner.
import { type Clock, sleep } from "../base/clock.ts";
import { type Backoff, backoffMs } from "../base/backoff.ts";
import { createLogger } from "../base/log.ts";

const log = createLogger("runner");

const RETRY: Backoff = { firstMs: 250, lastMs: 5_000 };
const DOWNLOAD_MAX_MS = 600_000;
const ANSWER_MAX_BYTES = 64 * 1024 * 1024;
const DETAIL_MAX_CHARACTERS = 500;

/** A point in time on both clocks. A sleeping machine stops the monotonic clock, and setting the time moves the wall clock. */
export interface Moment {
  wall: number;
  monotonic: number;
}

function readMoment(clock: Clock): Moment {
  return { wall: clock.now(), monotonic: clock.monotonic() };
}

// After this many attempts the log reports that the service is silent.
const SILENT_ATTEMPTS = 4;
const FINAL = [401, 403, 409];
// Statuses that reject a single report or file.
const WRONG = [400, 404, 413];

/** The service itself rejected the request, so a retry does not help. A rejection by a proxy is retried (contract 18.6). */
export class RefusedError extends Error {
  readonly status: number;

  constructor(status: number, detail: string) {
    super(detail);
    this.name = "Refused";
    this.status = status;
  }

  /** Whether the token, process or run is no longer valid. Otherwise only this request was wrong. */
  get final(): boolean {
    return FINAL.includes(this.status);
  }
}

/** The service did not answer, or failed. A retry may help. */
class UnansweredError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "Unanswered";
  }
}

interface SendOptions {
  /** Default: POST. */
  method?: "PUT";
  timeoutMs: number;
  signal?: AbortSignal | undefined;
  /** The request concerns one run, so its content may be rejected. */
  ofRun?: boolean;
}

/** An answer, with the time at which its request was sent. Leases count from that time. */
export interface ServiceAnswer<T> {
  value: T;
  sentAt: Moment;
}

interface Target {
  path: string;
  signal: AbortSignal;
}

/** Sends requests to one service with the token of one runner. */
export class ServiceClient {
  readonly url: string;
  readonly clock: Clock;
  readonly #token: string;

  constructor({ url, token, clock }: { url: string; token: string; clock: Clock }) {
    this.url = url;
    this.clock = clock;
    this.#token = token;
  }

  /** The headers that authenticate the runner. */
  get headers(): { authorization: string } {
    return { authorization: `Bearer ${this.#token}` };
  }

  /** Sends once. Throws Refused or Unanswered, and nothing else. */
  async post<T>(path: string, body: object | Uint8Array, sending: SendOptions): Promise<ServiceAnswer<T>> {
    const sentAt = readMoment(this.clock);
    const isBytes = body instanceof Uint8Array;
    const timeout = AbortSignal.timeout(sending.timeoutMs);
    let response: Response;
    let text: string;
    try {
      response = await fetch(`${this.url}${path}`, {
        method: sending.method ?? "POST",
        redirect: "error",
        headers: {
          ...this.headers,
          "content-type": isBytes ? "application/octet-stream" : "application/json",
        },
        body: isBytes ? body as Uint8Array<ArrayBuffer> : JSON.stringify(body, cleanText),
        signal: sending.signal === undefined ? timeout : AbortSignal.any([timeout, sending.signal]),
      });
      text = await readText(response);
    } catch (error) {
      throwUnanswered(error);
    }
    if (!response.ok) throw buildRefusal(response.status, text, sending.ofRun);
    try {
      // The runner trusts the service that its token belongs to.
      return { value: JSON.parse(text) as T, sentAt };
    } catch {
      throw new UnansweredError("the answer was cut off");
    }
  }

  /** Sends until the service answers. Throws Refused, and Unanswered once `signal` has aborted. */
  postUntilAnswered<T>(
    path: string,
    body: object | Uint8Array,
    sending: SendOptions,
  ): Promise<ServiceAnswer<T>> {
    return this.#retry(() => this.post<T>(path, body, sending), sending.signal);
  }

  /** Downloads a file with retries until it is complete. Throws Refused, disk errors, and Unanswered once `signal` has aborted. */
  download(from: string, target: Target): Promise<void> {
    return this.#retry(() => this.#download(from, target), target.signal);
  }

  async #retry<T>(ask: () => Promise<T>, signal: AbortSignal | undefined): Promise<T> {
    for (let attempt = 1;; attempt++) {
      try {
        const answered = await ask();
        if (attempt > SILENT_ATTEMPTS) log.info("The service answers again");
        return answered;
      } catch (error) {
        if (!(error instanceof UnansweredError) || signal?.aborted) throw error;
        if (attempt === SILENT_ATTEMPTS) {
          log.warning("The service does not answer, retrying: {error}", { error: error.message });
        }
        await sleep(this.clock, backoffMs(RETRY, attempt), signal);
      }
    }
  }

  async #download(from: string, { path, signal }: Target): Promise<void> {
    const response = await fetch(`${this.url}${from}`, {
      redirect: "error",
      headers: this.headers,
      signal: AbortSignal.any([signal, AbortSignal.timeout(DOWNLOAD_MAX_MS)]),
    }).catch(throwUnanswered);
    if (!response.ok || response.body === null) {
      throw buildRefusal(response.status, await readText(response).catch(throwUnanswered), true);
    }
    // An interrupted download has left a part. A new file is never behind a link.
    await Deno.remove(path).catch(() => {});
    using file = await Deno.open(path, { write: true, createNew: true, mode: 0o600 });
    const reader = response.body.getReader();
    try {
      for (;;) {
        const { value } = await reader.read().catch(throwUnanswered);
        if (value === undefined) return;
        for (let at = 0; at < value.length;) at += await file.write(value.subarray(at));
      }
    } finally {
      void reader.cancel().catch(() => {});
    }
  }
}

async function readText(response: Response): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length;
    if (bytes > ANSWER_MAX_BYTES) throw new Error("the answer is too large");
    text += decoder.decode(chunk, { stream: true });
  }
  return text + decoder.decode();
}

/** Turns an unsuccessful answer into an error. Only the service sends problem documents with a code, but any proxy may answer 403. */
function buildRefusal(status: number, text: string, ofRun = false): RefusedError | UnansweredError {
  const { code, detail } = parseProblem(text);
  const words = (detail ?? text).slice(0, DETAIL_MAX_CHARACTERS);
  const counts = FINAL.includes(status) || ofRun && WRONG.includes(status);
  // A proxy that refuses the body as too large would refuse it again.
  const tooLarge = ofRun && status === 413;
  if (tooLarge || counts && code !== undefined) return new RefusedError(status, words);
  return new UnansweredError(`the service, or a proxy before it, answered ${status}: ${words}`);
}

function parseProblem(text: string): { code?: string; detail?: string } {
  try {
    const { code, detail } = JSON.parse(text) as { code?: unknown; detail?: unknown };
    if (typeof code === "string" && typeof detail === "string") return { code, detail };
  } catch {
    // Not a problem document: something between the runner and the service answered.
  }
  return {};
}

function throwUnanswered(error: unknown): never {
  throw new UnansweredError(error instanceof Error ? error.message : String(error));
}

// The service accepts well-formed text without NUL only, but agents may write anything.
function cleanText(_key: string, value: unknown): unknown {
  return typeof value === "string" ? value.toWellFormed().replaceAll("\0", "\ufffd") : value;
}
