import type { Usage } from "../../domain/work/execution.ts";
import { isSessionId } from "../../domain/chat/session.ts";
import type { Adapter, AgentEvent, EngineFailure, Line } from "./adapter.ts";
import { isSessionUnknown } from "./failure.ts";
import { parseObject } from "./json_fields.ts";
import { LineSplitter } from "../process/line_splitter.ts";
import type { RunLog } from "../process/run_log.ts";
import { formatBytes, stripEscapes, Transcript } from "./transcript.ts";
import { UsageCounter } from "./usage_count.ts";

interface ParserOptions {
  adapter: Adapter;
  parse: (line: Line) => AgentEvent[];
  /** Whether the session id goes over stdin instead of into an argument. */
  hasDialogue: boolean;
  sessionId: string;
  log: RunLog;
  /** The file of events for programs. */
  events: RunLog | null;
  usedBefore: Usage;
  onEvent: (event: AgentEvent) => void;
}

// An image in a tool result can be one line of megabytes. All lines that matter are shorter.
const LINE_MAX_BYTES = 1024 * 1024;
// A parser of deeper lines would need a deeper stack.
const LINE_MAX_DEPTH = 200;
const TEXT_MAX_CHARACTERS = 400_000;
// Limit of stored sessions, because each is stored immediately. An agent reports one, and after a restart another one.
const SESSIONS_MAX = 20;
const PLAIN_ID = /^[^\p{C}]{1,200}$/u;
const STDERR_TAIL_CHARACTERS = 4_000;
// A longer line is not a message for people. The file of events has all of it.
const STDERR_LINE_MAX_BYTES = 64 * 1024;

/** Parses the output of one turn, and keeps the parts of its outcome. */
export class OutputParser {
  /** The session id that the engine reported, or "". */
  session = "";
  done: Extract<AgentEvent, { kind: "done" }> | null = null;
  /** The last failure; cleared when the agent writes or acts after it. */
  failure: EngineFailure | null = null;
  /** The output line, outside of events, that reports an unknown session, or "". */
  unknownSession = "";
  readonly usage: UsageCounter;
  readonly #options: ParserOptions;
  readonly #transcript: Transcript;
  readonly #out: LineSplitter;
  readonly #err: LineSplitter;
  #sessions = 0;
  #answer = "";
  /** The last text before the latest tool call. */
  #before = "";
  #acted = false;
  #stderr = "";

  constructor(options: ParserOptions) {
    this.#options = options;
    this.usage = new UsageCounter(options.usedBefore);
    this.#transcript = new Transcript(options.log);
    const tooLong = (stream: string) => (head: string, bytes: number) =>
      this.#transcript.event({
        kind: "notice",
        text: `skipped a line of ${formatBytes(bytes)} on ${stream}; it starts with ${head.slice(0, 100)}`,
      });
    this.#out = new LineSplitter(LINE_MAX_BYTES, (line) => this.#line(line), tooLong("stdout"));
    this.#err = new LineSplitter(STDERR_LINE_MAX_BYTES, (line) => this.#errorLine(line), tooLong("stderr"));
  }

  /** The text of the final event. If it has none, the last text of the turn, unless the final event reports a failure. */
  get text(): string {
    const text = this.done?.text ?? null;
    const said = this.#answer.trim() === "" ? this.#before : this.#answer;
    const isFinal = text !== null && (text.trim() !== "" || this.done?.ok === false);
    return (isFinal ? text : said).replaceAll("\0", "\ufffd").trimEnd();
  }

  get said(): string {
    return this.#answer.trim();
  }

  /** Whether there was any text or tool call. */
  get acted(): boolean {
    return this.#acted || this.text !== "";
  }

  /** The end of stderr, without colors. */
  get stderr(): string {
    return this.#stderr.trim();
  }

  /** Whether the agent wrote or did something. Unlike `acted`, the text of an error does not count. */
  get hasSpoken(): boolean {
    return this.#acted || this.said !== "";
  }

  add(stream: "stdout" | "stderr", chunk: Uint8Array): void {
    const { log, events } = this.#options;
    if (stream === "stdout") events?.write(chunk);
    log.writeTogether(() => (stream === "stderr" ? this.#err : this.#out).add(chunk));
  }

  take(events: readonly AgentEvent[]): void {
    for (const event of events) this.#take(event);
  }

  /** Ends the turn; `usageFile` is the text of the usage file. */
  end(usageFile: string | null): void {
    this.#out.end();
    this.#err.end();
    if (usageFile !== null) this.take(this.#options.adapter.parseUsageFile?.(usageFile) ?? []);
    this.#transcript.usage(this.usage.run);
  }

  #line(line: string): void {
    const parsed = line.startsWith("{") && !isDeep(line) ? parseObject(line) : null;
    if (parsed === null) return this.#otherLine(line);
    this.take(this.#options.parse(parsed));
  }

  #errorLine(line: string): void {
    if (this.#options.adapter.noise?.test(line)) return;
    this.#stderr = `${this.#stderr}${this.#options.log.maskText(stripEscapes(line))}\n`.slice(
      -STDERR_TAIL_CHARACTERS,
    );
    const events = this.#options.adapter.parseStderr?.(line) ?? [];
    if (events.length === 0) return this.#otherLine(line);
    this.take(events);
  }

  #otherLine(line: string): void {
    const plain = stripEscapes(line);
    if (isSessionUnknown(this.#options.adapter.endings, plain)) {
      this.unknownSession ||= this.#options.log.maskText(plain);
    }
    this.#transcript.other(line);
  }

  #take(event: AgentEvent): void {
    if (event.kind === "session") {
      const id = event.id ?? this.#options.sessionId;
      if (id === "" || id === this.session || this.#sessions++ >= SESSIONS_MAX) return;
      if (!this.#mayKeep(id)) {
        const shown = this.#options.log.maskText(id).slice(0, 100);
        const text = `its session id cannot be stored: ${JSON.stringify(shown)}`;
        return this.#transcript.event({ kind: "notice", text });
      }
      this.session = id;
    } else if (event.kind === "text") this.#say(event);
    else if (event.kind === "tool_start") {
      this.failure = null;
      this.#acted = true;
      if (this.#answer.trim() !== "") this.#before = this.#answer;
      this.#answer = "";
    } else if (event.kind === "usage") this.usage.add(event.span, event.usage, event.key);
    else if (event.kind === "failure") this.failure = mergeFailures(this.failure, event.failure);
    else if (event.kind === "done") {
      this.done = event;
      if (event.failure !== null) this.failure = mergeFailures(this.failure, event.failure);
    }
    this.#transcript.event(event);
    this.#options.onEvent(event);
  }

  #mayKeep(id: string): boolean {
    return isSessionId(id) || this.#options.hasDialogue && PLAIN_ID.test(id);
  }

  #say({ text, mode }: Extract<AgentEvent, { kind: "text" }>): void {
    if (text.trim() === "" && mode !== "piece") return;
    this.failure = null;
    const joint = mode === "part" && this.#answer !== "" ? "\n" : "";
    const before = mode === "whole" ? "" : this.#answer + joint;
    // Cutting a long text for each piece would copy the whole text each time.
    if (before.length < TEXT_MAX_CHARACTERS) this.#answer = (before + text).slice(0, TEXT_MAX_CHARACTERS);
  }
}

/** Whether JSON is nested deeper than the limit. Brackets inside texts do not count. */
function isDeep(json: string): boolean {
  // Counting the closing brackets first is faster, and enough for nearly every line.
  if (!hasMore(json, LINE_MAX_DEPTH, "}", "]")) return false;
  let depth = 0;
  let inText = false;
  for (let at = 0; at < json.length; at++) {
    const letter = json[at];
    if (inText) {
      if (letter === "\\") at++;
      else if (letter === '"') inText = false;
    } else if (letter === '"') inText = true;
    else if (letter === "{" || letter === "[") {
      if (++depth > LINE_MAX_DEPTH) return true;
    } else if (letter === "}" || letter === "]") depth--;
  }
  return false;
}

function hasMore(text: string, most: number, ...letters: string[]): boolean {
  let count = 0;
  for (const letter of letters) {
    for (let at = text.indexOf(letter); at !== -1; at = text.indexOf(letter, at + 1)) {
      if (++count > most) return true;
    }
  }
  return false;
}

// If an engine reports a limit twice, the first report has the more exact time.
function mergeFailures(before: EngineFailure | null, failure: EngineFailure): EngineFailure {
  const same = before?.kind === "rate_limited" && failure.kind === "rate_limited";
  return same ? { ...failure, reset: before.reset ?? failure.reset } : failure;
}
