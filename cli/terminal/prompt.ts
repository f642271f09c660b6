import { usageError } from "./exit.ts";
import type { Io } from "./io.ts";
import { escapeControls } from "./visible.ts";

// Without a terminal there may be no one to answer: a script must not hang (contract 6).
const PIPE_WAIT_MS = 5_000;

/**
 * Asks on stderr and reads one line. `y` or `yes` is yes, anything else no. Without a terminal the line has to be there
 * within five seconds, or it is a usage error and nothing is done (contract 6).
 */
export async function confirm(io: Io, question: string): Promise<boolean> {
  // It names things, and names may come from anybody.
  io.err(`${escapeControls(question)} [y/N] `);
  const line = await parseBashLine(io);
  if (!io.inIsTerminal) io.err("\n");
  if (line === null) {
    throw usageError(
      "there is no terminal to ask on and no answer on stdin; use --force to go on without asking",
    );
  }
  return /^y(es)?$/i.test(line.trim());
}

/** All of stdin as text, for the flag or argument `named`. Throws a usage error when it is longer than `max` bytes or not UTF-8. */
export async function readText(io: Io, max: number, named: string, instead = ""): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of openStdin(io)) {
    chunks.push(chunk);
    size += chunk.length;
    if (size > max) {
      throw usageError(`${named}: the text is longer than ${max} bytes${instead}`);
    }
  }
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(
      await new Blob(chunks as BlobPart[]).arrayBuffer(),
    );
  } catch {
    throw usageError(`${named}: the text is not valid UTF-8${instead}`);
  }
}

const END_OF_INPUT = "\u0004";
const ERASE = ["\b", "\u007f"];

/** Reads lines that are not shown while they are typed. Needs a terminal on stdin; Ctrl-C aborts the io's signal and ends it. */
export class SecretPrompt {
  readonly #io: Io;
  readonly #decoder = new TextDecoder();
  /** Typed ahead. */
  #pending: string[] = [];

  constructor(io: Io, otherwise = "--stdin") {
    if (!io.inIsTerminal) throw usageError(`there is no terminal to ask on; use ${otherwise}`);
    this.#io = io;
  }

  /** Asks on stderr and answers the line. */
  async ask(question: string): Promise<string> {
    this.#io.err(`${question}: `);
    this.#io.hideInput(true);
    try {
      return await this.#line();
    } finally {
      this.#io.hideInput(false);
      this.#io.err("\n");
    }
  }

  async #line(): Promise<string> {
    const typed: string[] = [];
    while (true) {
      const character = this.#pending.shift();
      if (character === undefined) this.#pending = [...await this.#more()];
      else if (character === "\n" || character === "\r") return typed.join("");
      else if (ERASE.includes(character)) typed.pop();
      else if (character === END_OF_INPUT) throw usageError("nothing was entered");
      else typed.push(character);
    }
  }

  async #more(): Promise<string> {
    const { stdin, signal } = this.#io;
    const reader = stdin.getReader();
    const interrupted = new Promise<null>((resolve) =>
      signal.addEventListener("abort", () => resolve(null), { once: true })
    );
    try {
      const next = await Promise.race([reader.read(), interrupted]);
      if (next === null || next.done) throw usageError("nothing was entered");
      return this.#decoder.decode(next.value, { stream: true });
    } finally {
      reader.releaseLock();
    }
  }
}

/** Every line of stdin, without their ends. For secrets that a script hands over. */
export async function readLines(io: Io): Promise<string[]> {
  const text = await new Response(openStdin(io)).text();
  return text.replace(/\r?\n$/, "").split(/\r?\n/);
}

/** The first line of stdin; null when it ends, or stays silent for too long, without one. */
async function parseBashLine(io: Io): Promise<string | null> {
  const reader = openStdin(io).getReader();
  const decoder = new TextDecoder();
  let text = "";
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<"late">((resolve) => {
    if (!io.inIsTerminal) timer = setTimeout(() => resolve("late"), PIPE_WAIT_MS);
  });
  try {
    while (!text.includes("\n")) {
      const next = await Promise.race([reader.read(), late]);
      if (next === "late") return null;
      if (next.done) break;
      text += decoder.decode(next.value, { stream: true });
    }
  } finally {
    clearTimeout(timer);
    void reader.cancel().catch(() => {});
  }
  return text === "" ? null : text.split("\n")[0] ?? null;
}

// We handle SIGINT ourselves, so Ctrl-C would otherwise not end a wait for a line.
function openStdin(io: Io): ReadableStream<Uint8Array> {
  return io.stdin.pipeThrough(new TransformStream<Uint8Array, Uint8Array>(), { signal: io.signal });
}
