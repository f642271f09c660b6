import { concatBytes, GrowingBytes } from "../../base/bytes.ts";
import type { AnswerWatcher } from "./answer_stream.ts";
import { type AnswerUsage, readReport } from "./usage.ts";

/** The largest event, or answer in one piece, in which the service looks for usage. */
const METERED_MAX_BYTES = 32 * 1024 * 1024;

/** Tokens of an answer, to be added to those that were counted before. */
interface CountedTokens {
  answers: number;
  estimated: number;
  input_tokens: number;
  output_tokens: number;
}

interface MeterOptions {
  /** Bytes of the request, for an estimate. */
  requestBytes: number;
  /** Whether to leave out a chunk that only has usage, because the client did not ask for it. */
  dropsExtra: boolean;
  isStream: boolean;
  /** Takes over tokens, which are stored soon. */
  note: (tokens: CountedTokens) => void;
  /** Stores tokens. Resolves when they are stored. */
  count: (tokens: CountedTokens) => Promise<void>;
  onResponse: (id: string) => void;
}

const BYTES_PER_TOKEN = 4;
const NOTHING = new Uint8Array();

/**
 * Counts the tokens of an answer while it passes. The client gets the end of an answer only after its tokens are stored, so a kill of the
 * service loses no answer that arrived (reliability GTW-2). An answer without usage counts by its size.
 */
export class Meter implements AnswerWatcher {
  readonly #options: MeterOptions;
  readonly #usage: AnswerUsage = { input: null, output: null, isFinal: false };
  readonly #counted = { answers: 0, input: 0, output: 0 };
  /** The start of an event, or an answer in one piece, that has not ended. */
  #arrived = new GrowingBytes();
  /** Where the search for the end of the event continues. */
  #searched = 0;
  #bytes = 0;
  #isTooLarge = false;

  constructor(options: MeterOptions) {
    this.#options = options;
  }

  async take(piece: Uint8Array): Promise<Uint8Array> {
    this.#bytes += piece.length;
    if (this.#isTooLarge) return piece;
    if (this.#arrived.size + piece.length > METERED_MAX_BYTES) {
      this.#isTooLarge = true;
      const held = this.#options.isStream && !this.#options.dropsExtra ? NOTHING : this.#arrived.view();
      return concatBytes([held, piece]);
    }
    // The usage is part of the only piece. Nothing passes before it is stored.
    this.#arrived.append(piece);
    if (!this.#options.isStream) return NOTHING;
    const passed = this.#takeEvents();
    if (this.#usage.isFinal) await this.#countNews(false);
    else if (this.#usage.input !== null && this.#counted.answers === 0) this.#noteNews();
    return this.#options.dropsExtra ? passed : piece;
  }

  async end(): Promise<Uint8Array> {
    const rest = this.#isTooLarge ? NOTHING : this.#arrived.view();
    if (this.#options.isStream) this.#readEvent(rest);
    else this.#read(new TextDecoder().decode(rest));
    await this.#countNews(true);
    return this.#options.isStream && !this.#options.dropsExtra ? NOTHING : rest;
  }

  /** Reads the events that are complete. Returns those that pass. */
  #takeEvents(): Uint8Array {
    const bytes = this.#arrived.view();
    const passed: Uint8Array[] = [];
    let from = 0;
    for (let end = findEventEnd(bytes, this.#searched); end !== -1; end = findEventEnd(bytes, from)) {
      const event = bytes.subarray(from, end);
      if (!this.#readEvent(event)) passed.push(event);
      from = end;
    }
    // An end is at most three bytes long.
    this.#searched = Math.max(0, bytes.length - from - 3);
    if (from === 0) return NOTHING;
    const whole = concatBytes(passed.map((event) => event.slice()));
    const rest = bytes.slice(from);
    this.#arrived = new GrowingBytes();
    this.#arrived.append(rest);
    return whole;
  }

  /** Returns whether the event must not pass. */
  #readEvent(event: Uint8Array): boolean {
    const text = new TextDecoder().decode(event);
    if (!/"usage"|"response\.created"/.test(text)) return false;
    const data = text.split(/\r?\n/).filter((line) => line.startsWith("data:")).map((line) => line.slice(5));
    return this.#read(data.join("\n")) && this.#options.dropsExtra;
  }

  /** Takes over what a text reports. Returns whether it only has usage. */
  #read(json: string): boolean {
    const report = readReport(json);
    if (report === null) return false;
    if (report.responseId !== null) this.#options.onResponse(report.responseId);
    const { input, output, isFinal, isExtra } = report;
    if (input !== null) this.#usage.input = Math.max(this.#usage.input ?? 0, input);
    if (output !== null) this.#usage.output = Math.max(this.#usage.output ?? 0, output);
    this.#usage.isFinal ||= isFinal;
    return isExtra;
  }

  // A write would block the process until the disk has it, and the first byte would wait.
  #noteNews(): void {
    const news = this.#takeNews(false);
    if (news !== null) this.#options.note(news);
  }

  async #countNews(atEnd: boolean): Promise<void> {
    const news = this.#takeNews(atEnd);
    if (news !== null) await this.#options.count(news);
  }

  /** Returns what was not counted before, or null. At the end, what is missing is estimated. */
  #takeNews(atEnd: boolean): CountedTokens | null {
    const { input, output, isFinal } = this.#usage;
    const isEstimate = atEnd && !isFinal;
    const estimatedOutput = Math.max(output ?? 0, Math.ceil(this.#bytes / BYTES_PER_TOKEN));
    const now = {
      input: input ?? (isEstimate ? Math.ceil(this.#options.requestBytes / BYTES_PER_TOKEN) : 0),
      output: isEstimate ? estimatedOutput : isFinal ? output ?? 0 : 0,
    };
    const news = {
      answers: 1 - this.#counted.answers,
      estimated: isEstimate ? 1 : 0,
      input_tokens: Math.max(0, now.input - this.#counted.input),
      output_tokens: Math.max(0, now.output - this.#counted.output),
    };
    if (Object.values(news).every((figure) => figure === 0)) return null;
    Object.assign(this.#counted, {
      answers: 1,
      input: this.#counted.input + news.input_tokens,
      output: this.#counted.output + news.output_tokens,
    });
    return news;
  }
}

/** Estimates the tokens of a request without an answer. */
export function estimateRequest(bytes: number): CountedTokens {
  return { answers: 1, estimated: 1, input_tokens: Math.ceil(bytes / BYTES_PER_TOKEN), output_tokens: 0 };
}

/** Passes an answer without looking at it. */
export const UNWATCHED: AnswerWatcher = {
  take: (piece) => piece,
  end: () => Promise.resolve(NOTHING),
};

const LF = 10;
const CR = 13;

/** Returns the index after the empty line that ends the event, or -1. */
function findEventEnd(bytes: Uint8Array, from: number): number {
  for (let at = bytes.indexOf(LF, from); at !== -1; at = bytes.indexOf(LF, at + 1)) {
    const next = bytes[at + 1] === CR ? at + 2 : at + 1;
    if (bytes[next] === LF) return next + 1;
  }
  return -1;
}
