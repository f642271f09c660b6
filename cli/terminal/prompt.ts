import { usageError } from "./exit.ts";
import { openStdin } from "./input_text.ts";
import type { Io } from "./io.ts";
import { escapeControls } from "./visible.ts";

// A script must not hang on a question (contract 6).
const PIPE_WAIT_MS = 5_000;

/**
 * Asks on stderr and reads one line. Only `y` and `yes` confirm. Without a terminal, throws a usage error unless stdin
 * has the line within five seconds (contract 6).
 */
export async function confirm(io: Io, question: string, force = "--force"): Promise<boolean> {
  // The question has names that users chose.
  io.err(`${escapeControls(question)} [y/N] `);
  const line = await readFirstLine(io);
  if (!io.inIsTerminal) io.err("\n");
  if (line === null) {
    throw usageError(
      `cannot ask without a terminal and without an answer on stdin. Use ${force} to skip the question.`,
    );
  }
  return /^y(es)?$/i.test(line.trim());
}

const END_OF_INPUT = "\u0004";
const ERASE = ["\b", "\u007f"];

/** Reads hidden lines from a terminal. Ctrl-C ends a read. */
export class SecretPrompt {
  readonly #io: Io;
  readonly #decoder = new TextDecoder();
  /** Characters typed before the next question. */
  #pending: string[] = [];

  constructor(io: Io, otherwise = "--stdin") {
    if (!io.inIsTerminal) throw usageError(`cannot ask without a terminal. Use ${otherwise}.`);
    this.#io = io;
  }

  /** Asks on stderr and returns the line. */
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

/** Reads all lines of stdin. For secrets from scripts. */
export async function readLines(io: Io): Promise<string[]> {
  const text = await new Response(openStdin(io)).text();
  return text.replace(/\r?\n$/, "").split(/\r?\n/);
}

/** Reads the first line of stdin. Returns null at its end or timeout. */
async function readFirstLine(io: Io): Promise<string | null> {
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

/** Reads a password from the first line of stdin, or asks for it. */
export async function readPassword(io: Io, fromStdin: boolean, question: string): Promise<string> {
  if (fromStdin) return (await readLines(io))[0] ?? "";
  return await new SecretPrompt(io, "--password-stdin").ask(question);
}

/** Asks twice for a new password. Throws a usage error if the two differ. */
export async function readNewPassword(prompt: SecretPrompt): Promise<string> {
  const fresh = await prompt.ask("New password");
  if (await prompt.ask("Again") !== fresh) throw usageError("the passwords differ. Changed nothing.");
  return fresh;
}
