// The way from a runner to its service: requests over HTTPS, all of them outward
import { type Clock, sleep } from "../base/clock.ts";
import { type Backoff, backoffMs } from "../base/backoff.ts";
import { logger } from "../base/log.ts";

const log = logger("runner");

const RETRY: Backoff = { firstMs: 250, lastMs: 5_000 };
const DOWNLOAD_MAX_MS = 600_000;
const ANSWER_MAX_BYTES = 64 * 1024 * 1024;
const DETAIL_MAX_CHARACTERS = 500;

/** A point in time on both clocks: a machine that slept has lost time on one, a clock that was set on the other. */
export interface Moment {
  wall: number;
  monotonic: number;
}

/** The present. */
function momentOf(clock: Clock): Moment {
  return { wall: clock.now(), monotonic: clock.monotonic() };
}

// What the service says to whoever asks: its token, its process or its run does not count any more.
// After so many tries the log says that there is no answer.
const SILENT_ATTEMPTS = 4;
const FINAL = [401, 403, 409];
// What it says to one report or file, which is wrong by itself.
const WRONG = [400, 404, 413];

/** The service itself answered, and said no: asking again does not help. Something on the way that says no is not asked in vain (contract 18.6). */
export class Refused extends Error {
  readonly status: number;

  constructor(status: number, detail: string) {
    super(detail);
    this.name = "Refused";
    this.status = status;
  }

  /** Nothing of what this was about is ours any more. Otherwise only what was sent is wrong. */
  get final(): boolean {
    return FINAL.includes(this.status);
  }
}

/** The service did not answer, or could not do its part: asking again may help. */
class Unanswered extends Error {
  constructor(message: string) {
    super(message);
    this.name = "Unanswered";
  }
}

/** How a request is sent. */
interface Sending {
  timeoutMs: number;
  signal?: AbortSignal | undefined;
  /** It is about one run, so that it may be refused for what is in it. */
  ofRun?: boolean;
}

/** An answer, and when its request was sent: leases count from there. */
export interface Answered<T> {
  value: T;
  sentAt: Moment;
}

/** What a download is written to. */
interface Target {
  path: string;
  signal: AbortSignal;
}

/** Sends requests to one service with the token of one runner. */
export class Link {
  readonly url: string;
  readonly clock: Clock;
  readonly #token: string;

  constructor({ url, token, clock }: { url: string; token: string; clock: Clock }) {
    this.url = url;
    this.clock = clock;
    this.#token = token;
  }

  /** What says who asks. */
  get headers(): { authorization: string } {
    return { authorization: `Bearer ${this.#token}` };
  }

  /** Sends once. Throws Refused or Unanswered, and nothing else. */
  async post<T>(path: string, body: object | Uint8Array, sending: Sending): Promise<Answered<T>> {
    const sentAt = momentOf(this.clock);
    const isBytes = body instanceof Uint8Array;
    const timeout = AbortSignal.timeout(sending.timeoutMs);
    let response: Response;
    let text: string;
    try {
      response = await fetch(`${this.url}${path}`, {
        method: "POST",
        redirect: "error",
        headers: {
          ...this.headers,
          "content-type": isBytes ? "application/octet-stream" : "application/json",
        },
        body: isBytes ? body as Uint8Array<ArrayBuffer> : JSON.stringify(body, clean),
        signal: sending.signal === undefined ? timeout : AbortSignal.any([timeout, sending.signal]),
      });
      text = await boundedText(response);
    } catch (error) {
      unanswered(error);
    }
    if (!response.ok) throw refusalOf(response.status, text, sending.ofRun);
    try {
      // What comes from the service that the token belongs to is believed.
      return { value: JSON.parse(text) as T, sentAt };
    } catch {
      throw new Unanswered("the answer was cut off");
    }
  }

  /** Sends until it is answered. Throws Refused; and Unanswered once `signal` has aborted. */
  insist<T>(path: string, body: object | Uint8Array, sending: Sending): Promise<Answered<T>> {
    return this.#until(() => this.post<T>(path, body, sending), sending.signal);
  }

  /**
   * Downloads a file, again and again until it is there as a whole. Throws Refused, and what the disk says; and Unanswered once
   * `signal` has aborted.
   */
  download(from: string, target: Target): Promise<void> {
    return this.#until(() => this.#download(from, target), target.signal);
  }

  async #until<T>(ask: () => Promise<T>, signal: AbortSignal | undefined): Promise<T> {
    for (let attempt = 1;; attempt++) {
      try {
        const answered = await ask();
        if (attempt > SILENT_ATTEMPTS) log.info("The service answers again");
        return answered;
      } catch (error) {
        if (!(error instanceof Unanswered) || signal?.aborted) throw error;
        if (attempt === SILENT_ATTEMPTS) {
          log.warning("The service does not answer, trying on: {error}", { error: error.message });
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
    }).catch(unanswered);
    if (!response.ok || response.body === null) {
      throw refusalOf(response.status, await boundedText(response).catch(unanswered), true);
    }
    // Of a try that was cut off a part is there.
    using file = await Deno.open(path, { write: true, create: true, truncate: true, mode: 0o600 });
    const reader = response.body.getReader();
    try {
      for (;;) {
        const { value } = await reader.read().catch(unanswered);
        if (value === undefined) return;
        for (let at = 0; at < value.length;) at += await file.write(value.subarray(at));
      }
    } finally {
      void reader.cancel().catch(() => {});
    }
  }
}

async function boundedText(response: Response): Promise<string> {
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

/** What an answer that is no success means. Only the service writes problem documents with a code; anything on the way may answer 403, too. */
function refusalOf(status: number, text: string, ofRun = false): Refused | Unanswered {
  const { code, detail } = problemOf(text);
  const words = (detail ?? text).slice(0, DETAIL_MAX_CHARACTERS);
  const counts = FINAL.includes(status) || ofRun && WRONG.includes(status);
  // What is too large for something on the way is so the next time, too.
  const tooLarge = ofRun && status === 413;
  if (tooLarge || counts && code !== undefined) return new Refused(status, words);
  return new Unanswered(`the service, or something on the way to it, answered ${status}: ${words}`);
}

function problemOf(text: string): { code?: string; detail?: string } {
  try {
    const { code, detail } = JSON.parse(text) as { code?: unknown; detail?: unknown };
    if (typeof code === "string" && typeof detail === "string") return { code, detail };
  } catch {
    // Not a problem document: something between us and the service answered.
  }
  return {};
}

function unanswered(error: unknown): never {
  throw new Unanswered(error instanceof Error ? error.message : String(error));
}

// A service takes whole characters and no NUL; what an agent wrote may have others.
function clean(_key: string, value: unknown): unknown {
  return typeof value === "string" ? value.toWellFormed().replaceAll("\0", "\ufffd") : value;
}
