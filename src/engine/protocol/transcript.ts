import { stripVTControlCharacters } from "node:util";
import { countBytes } from "../../base/bytes.ts";
import type { Usage } from "../../domain/work/execution.ts";
import type { AgentEvent } from "./adapter.ts";
import type { RunLog } from "../process/run_log.ts";

const INPUT_MAX_CHARACTERS = 1_000;
const OUTPUT_MAX_CHARACTERS = 1_000;
const OUTPUT_MAX_LINES = 10;

/**
 * Writes an agent's events for people: text unchanged, `>` a tool call, `<` its shortened result with size, `!` a failure, and the
 * service's lines in brackets (contract 3, Execution).
 */
export class Transcript {
  readonly #log: RunLog;

  constructor(log: RunLog) {
    this.#log = log;
  }

  event(event: AgentEvent): void {
    if (event.kind === "text") {
      if (event.mode === "piece") this.#log.write(new TextEncoder().encode(event.text));
      else this.#log.line(event.text.trimEnd());
    } else if (event.kind === "tool_start") {
      const input = shorten(this.#safe(event.input), INPUT_MAX_CHARACTERS, OUTPUT_MAX_LINES);
      this.#log.line(`> ${event.name}${input === "" ? "" : `: ${indent(input)}`}`);
    } else if (event.kind === "tool_end") {
      const output = this.#safe(event.output).trimEnd();
      const short = shorten(output, OUTPUT_MAX_CHARACTERS, OUTPUT_MAX_LINES);
      const size = formatBytes(countBytes(event.output));
      this.#log.line(`< ${event.ok ? "" : "failed: "}${short === "" ? "" : `${indent(short)} `}(${size})`);
    } else if (event.kind === "notice") this.#log.line(`[${this.#safe(event.text)}]`);
    else if (event.kind === "session" && event.id !== null) this.#log.line(`[session ${event.id}]`);
    else if (event.kind === "failure") {
      this.#log.line(`! ${event.failure.kind}: ${this.#safe(event.failure.words)}`);
    }
  }

  /** Writes a line of stderr, or a line of stdout that is not an event. */
  other(line: string): void {
    if (line.trim() !== "") this.#log.line(stripEscapes(line));
  }

  usage(usage: Usage): void {
    const { input_tokens, output_tokens, cost_usd } = usage;
    const parts = [
      ...(input_tokens === null ? [] : [`${input_tokens} tokens in`]),
      ...(output_tokens === null ? [] : [`${output_tokens} tokens out`]),
      ...(cost_usd === null ? [] : [`${cost_usd} USD`]),
    ];
    if (parts.length > 0) this.#log.line(`[used ${parts.join(", ")}]`);
  }

  // Masks secrets before a text is cut. The words of a failure are already cut, and maskText() recognizes that by the mark.
  #safe(text: string): string {
    return this.#log.maskText(stripEscapes(text));
  }
}

/** Removes the colors and other terminal codes of a program. */
export function stripEscapes(text: string): string {
  return text.includes("\u001b") ? stripVTControlCharacters(text) : text;
}

/** Cuts a text and adds a mark at the cut. */
export function shorten(text: string, maxCharacters: number, maxLines: number): string {
  const head = text.slice(0, maxCharacters).split("\n").slice(0, maxLines).join("\n");
  return head.length === text.length ? text : `${head} …`;
}

export function formatBytes(bytes: number): string {
  if (bytes < 1_000) return `${bytes} bytes`;
  if (bytes < 1_000_000) return `${(bytes / 1_000).toFixed(1)} KB`;
  return `${(bytes / 1_000_000).toFixed(1)} MB`;
}

function indent(text: string): string {
  return text.replaceAll("\n", "\n  ");
}
