// The way from a runner to its service: requests over HTTPS, all of them outward
import { type Clock, sleep } from "../base/clock.ts";
import { type Backoff, backoffMs } from "../base/backoff.ts";
import { logger } from "../base/log.ts";

const log = logger("runner");

const RETRY: Backoff = { firstMs: 250, lastMs: 5_000 };
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

/** The service answered, and said no: asking again does not help. */
export class Refused extends Error {
  readonly status: number;

  constructor(status: number, detail: string) {
    super(detail);
    this.name = "Refused";
    this.status = status;
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
}

/** An answer, and when its request was sent: leases count from there. */
interface Answered<T> {
  value: T;
  sentAt: Moment;
}

/** Sends requests to one service with the token of one runner. */
export class Link {
  readonly url: string;
  readonly #token: string;
  readonly #clock: Clock;

  constructor({ url, token, clock }: { url: string; token: string; clock: Clock }) {
    this.url = url;
    this.#token = token;
    this.#clock = clock;
  }

  /** What says who asks. */
  get headers(): { authorization: string } {
    return { authorization: `Bearer ${this.#token}` };
  }

  /** Sends once. Throws Refused or Unanswered, and nothing else. */
  async post<T>(path: string, body: object | Uint8Array, sending: Sending): Promise<Answered<T>> {
    const sentAt = momentOf(this.#clock);
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
        body: isBytes ? body as Uint8Array<ArrayBuffer> : JSON.stringify(body),
        signal: sending.signal === undefined ? timeout : AbortSignal.any([timeout, sending.signal]),
      });
      text = await boundedText(response);
    } catch (error) {
      throw new Unanswered(error instanceof Error ? error.message : String(error));
    }
    if (response.status >= 500 || response.status === 429) {
      throw new Unanswered(`the service answered ${response.status}: ${detailOf(text)}`);
    }
    if (!response.ok) throw new Refused(response.status, detailOf(text));
    try {
      // What comes from the service that the token belongs to is believed.
      return { value: JSON.parse(text) as T, sentAt };
    } catch {
      throw new Unanswered("the answer was cut off");
    }
  }

  /** Sends until it is answered. Throws Refused; and Unanswered once `signal` has aborted. */
  async insist<T>(path: string, body: object | Uint8Array, sending: Sending): Promise<Answered<T>> {
    for (let attempt = 1;; attempt++) {
      try {
        return await this.post<T>(path, body, sending);
      } catch (error) {
        if (!(error instanceof Unanswered) || sending.signal?.aborted) throw error;
        if (attempt === 4) {
          log.warning("The service does not answer, trying on: {error}", { error: error.message });
        }
        await sleep(this.#clock, backoffMs(RETRY, attempt), sending.signal);
      }
    }
  }
}

/** What a download is written to. */
interface Target {
  path: string;
  signal: AbortSignal;
}

const DOWNLOAD_MAX_MS = 600_000;

/** Downloads a file, which must not be there yet. Throws when it does not come whole. */
export async function download(link: Link, from: string, { path, signal }: Target): Promise<void> {
  const response = await fetch(`${link.url}${from}`, {
    redirect: "error",
    headers: link.headers,
    signal: AbortSignal.any([signal, AbortSignal.timeout(DOWNLOAD_MAX_MS)]),
  });
  if (!response.ok || response.body === null) {
    throw new Refused(response.status, detailOf(await boundedText(response)));
  }
  using file = await Deno.open(path, { write: true, createNew: true, mode: 0o600 });
  for await (const chunk of response.body) {
    for (let at = 0; at < chunk.length;) at += await file.write(chunk.subarray(at));
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

function detailOf(text: string): string {
  try {
    const { detail } = JSON.parse(text) as { detail?: unknown };
    if (typeof detail === "string") return detail.slice(0, DETAIL_MAX_CHARACTERS);
  } catch {
    // Not a problem document: something between us and the service answered.
  }
  return text.slice(0, DETAIL_MAX_CHARACTERS);
}
