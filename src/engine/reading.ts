import type { Usage } from "../domain/execution.ts";
import type { Adapter, AgentEvent, EngineFailure } from "./adapter.ts";
import { isObject } from "./line.ts";
import { LineSplitter } from "./line_splitter.ts";
import type { RunLog } from "./run_log.ts";
import { byteSize, plain, Transcript } from "./transcript.ts";
import { UsageCount } from "./usage_count.ts";

/** What a process is read with. */
export interface ReadingParts {
  adapter: Adapter;
  /** The session that was asked for. */
  sessionId: string;
  /** For people. */
  log: RunLog;
  /** The events as they came, for programs. */
  events: RunLog | null;
  /** What the session had used before. */
  usedBefore: Usage;
  onEvent: (event: AgentEvent) => void;
}

// A picture that a tool read may be megabytes of one line; of what we need none is.
const LINE_MAX_BYTES = 1024 * 1024;
const TEXT_MAX_CHARACTERS = 400_000;
const STDERR_TAIL_CHARACTERS = 4_000;
// More than that is no notice but a flood: the file of events has it all.
const STDERR_LINE_MAX_BYTES = 64 * 1024;

/** Reads what one agent process says, and knows at its end how it went. */
export class Reading {
  /** The id that the engine gave its session, "" until it did. */
  session = "";
  done: Extract<AgentEvent, { kind: "done" }> | null = null;
  /** The failure that no later text or tool call has made obsolete. */
  failure: EngineFailure | null = null;
  readonly usage: UsageCount;
  readonly #parts: ReadingParts;
  readonly #transcript: Transcript;
  readonly #out: LineSplitter;
  readonly #err: LineSplitter;
  #answer = "";
  #acted = false;
  #stderr = "";

  constructor(parts: ReadingParts) {
    this.#parts = parts;
    this.usage = new UsageCount(parts.usedBefore);
    this.#transcript = new Transcript(parts.log);
    const tooLong = (stream: string) => (head: string, bytes: number) =>
      this.#transcript.event({
        kind: "notice",
        text: `a line of ${byteSize(bytes)} on ${stream} was not read; it begins ${head.slice(0, 100)}`,
      });
    this.#out = new LineSplitter(LINE_MAX_BYTES, (line) => this.#line(line), tooLong("stdout"));
    this.#err = new LineSplitter(STDERR_LINE_MAX_BYTES, (line) => this.#errorLine(line), tooLong("stderr"));
  }

  /** The answer: what the engine names as such, else its text after its last tool. */
  get text(): string {
    return (this.done?.text ?? this.#answer).replaceAll("\0", "\ufffd").trimEnd();
  }

  /** Its text after its last tool. */
  get said(): string {
    return this.#answer.trim();
  }

  /** Whether it did anything at all that a person would notice. */
  get acted(): boolean {
    return this.#acted || this.text !== "";
  }

  /** The end of stderr, without the colours. */
  get stderr(): string {
    return this.#stderr.trim();
  }

  add(stream: "stdout" | "stderr", chunk: Uint8Array): void {
    if (stream === "stderr") return this.#err.add(chunk);
    this.#parts.events?.write(chunk);
    this.#out.add(chunk);
  }

  /** The process has ended; `usageFile` is the content of its usage file. */
  end(usageFile: string | null): void {
    this.#out.end();
    this.#err.end();
    if (usageFile !== null) {
      for (const event of this.#parts.adapter.usageOf?.(usageFile) ?? []) this.#take(event);
    }
    this.#transcript.usage(this.usage.run);
  }

  #line(line: string): void {
    const parsed = parse(line);
    if (parsed === null) return this.#transcript.other(line);
    for (const event of this.#parts.adapter.events(parsed)) this.#take(event);
  }

  #errorLine(line: string): void {
    if (this.#parts.adapter.noise?.test(line)) return;
    this.#stderr = `${this.#stderr}${plain(line)}\n`.slice(-STDERR_TAIL_CHARACTERS);
    const events = this.#parts.adapter.complaints?.(line) ?? [];
    if (events.length === 0) return this.#transcript.other(line);
    for (const event of events) this.#take(event);
  }

  #take(event: AgentEvent): void {
    if (event.kind === "session") {
      const id = event.id ?? this.#parts.sessionId;
      if (id === "" || id === this.session) return;
      this.session = id;
    } else if (event.kind === "text") this.#say(event);
    else if (event.kind === "tool_start") {
      this.failure = null;
      this.#acted = true;
      this.#answer = "";
    } else if (event.kind === "usage") this.usage.add(event.span, event.usage);
    else if (event.kind === "failure") this.failure = joined(this.failure, event.failure);
    else if (event.kind === "done") this.#finish(event);
    this.#transcript.event(event);
    this.#parts.onEvent(event);
  }

  #finish(done: Extract<AgentEvent, { kind: "done" }>): void {
    this.done = done;
    if (done.failure !== null) this.failure = joined(this.failure, done.failure);
  }

  #say({ text, mode }: Extract<AgentEvent, { kind: "text" }>): void {
    this.failure = null;
    const joint = mode === "part" && this.#answer !== "" ? "\n" : "";
    const before = mode === "whole" ? "" : this.#answer + joint;
    this.#answer = (before + text).slice(0, TEXT_MAX_CHARACTERS);
  }
}

function parse(line: string): Record<string, unknown> | null {
  if (!line.startsWith("{")) return null;
  try {
    const value: unknown = JSON.parse(line);
    return isObject(value) ? value : null;
  } catch {
    return null;
  }
}

// A limit that is reported twice keeps the more exact time, which comes first.
function joined(before: EngineFailure | null, failure: EngineFailure): EngineFailure {
  const same = before?.kind === "rate_limited" && failure.kind === "rate_limited";
  return same ? { ...failure, reset: before.reset ?? failure.reset } : failure;
}
