import { createParser } from "eventsource-parser";
import { ServiceError } from "../../src/domain/call/error.ts";
import { EXIT, Exit } from "../terminal/exit.ts";
import { escapeControls } from "../terminal/visible.ts";

/** A reply of the stream or the trace. */
export interface Reply {
  id: string;
  content: string;
  reply_to?: string | null;
  question_id?: string | null;
  worker_name?: string;
  media?: { original_name: string; size: number; mime: string } | null;
}

interface ReplyListener {
  reply: (said: Reply, json: string) => void;
  state: (words: string) => void;
}

/** The stream of a conversation, and the position to resume from after a lost connection. */
export class ReplyStream {
  /** The number of the latest event. */
  after: number | undefined;
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly #decoder = new TextDecoder();
  readonly #parser: ReturnType<typeof createParser>;
  #pending: Promise<ReadableStreamReadResult<Uint8Array> | null> | null = null;
  #news = false;
  #idle = false;
  #over = false;

  constructor(response: Response, after: number | undefined, listener: ReplyListener) {
    this.after = after;
    this.#reader = (response.body as ReadableStream<Uint8Array>).getReader();
    this.#parser = createParser({
      onEvent: ({ id, event, data }) => {
        if (id !== undefined && /^\d+$/.test(id)) this.after = Number(id);
        this.#take(event ?? "", JSON.parse(data), data, listener);
      },
    });
  }

  /**
   * Reads until a reply, the idle state or the timeout. `lost` means that the stream can be opened again. Throws if
   * the conversation is gone.
   */
  async next(waitMs: number): Promise<{ idle: boolean; lost: boolean }> {
    this.#news = false;
    const late = startTimer(waitMs);
    try {
      while (!this.#news && !this.#over) {
        this.#pending ??= this.#reader.read().catch(() => null);
        const read = await Promise.race([this.#pending, late.done]);
        if (read === "late") break;
        this.#pending = null;
        if (read === null || read.done) return { idle: this.#idle, lost: true };
        this.#parser.feed(this.#decoder.decode(read.value, { stream: true }));
      }
      return { idle: this.#idle, lost: this.#over };
    } finally {
      late.clear();
    }
  }

  async close(): Promise<void> {
    await this.#reader.cancel().catch(() => {});
  }

  #take(event: string, said: StreamEvent, json: string, { reply, state }: ReplyListener): void {
    if (event === "message") {
      this.#news = true;
      reply(said, json);
    } else if (event === "status") {
      this.#idle = said.state === "idle";
      if (this.#idle) this.#news = true;
      else state(formatState(said));
    } else if (event === "end") {
      this.#over = true;
      if (said.reason === "deleted") throw new Exit(EXIT.awaitedFailed, "the conversation was deleted");
      if (said.reason === "revoked") {
        throw new ServiceError("unauthenticated", "Cannot continue the conversation: the token was revoked");
      }
    }
  }
}

type StreamEvent = Reply & { state?: string; reason?: string };

function startTimer(ms: number): { done: Promise<"late">; clear: () => void } {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const done = new Promise<"late">((resolve) => timer = setTimeout(() => resolve("late"), ms));
  return { done, clear: () => clearTimeout(timer) };
}

function formatState({ state = "", worker_name = "" }: StreamEvent): string {
  const name = escapeControls(worker_name);
  if (state === "working") return `${name} is working`;
  if (state === "queued") return name === "" ? "queued" : `queued for ${name}`;
  return state;
}
