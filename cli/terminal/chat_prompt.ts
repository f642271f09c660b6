import { createInterface } from "node:readline";
import { PassThrough, Writable } from "node:stream";
import type { Io } from "./io.ts";

const PASTE_START = "\u001b[200~";
const PASTE_END = "\u001b[201~";
const CTRL_C = "\u0003";
// Replaces a line break within an entry, so that a paste can be edited and found in the history.
const BREAK = "⏎";
const HISTORY_MAX = 200;
const CLEAR_LINE = "\r\u001b[2K";

/**
 * A prompt on a terminal: node:readline edits lines and keeps the history, and a paste of several lines is one entry.
 * Keys typed during a reply are kept for the next prompt; Ctrl-C then calls `onInterrupt`.
 */
export class ChatPrompt {
  /** Runs at Ctrl-C during a reply. */
  onInterrupt: () => void = () => {};
  /** Whether a reply is pending, also while the prompt is open. Decides what Ctrl-C does. */
  busy = false;
  readonly #io: Io;
  readonly #keys = new PassThrough();
  readonly #lines: ReturnType<typeof createInterface>;
  #asking: ((line: string | null) => void) | null = null;
  #pasted = "";
  #pasting = false;
  #ahead = "";
  #ended = false;

  constructor(io: Io, prompt: string) {
    this.#io = io;
    const output = new Writable({
      decodeStrings: false,
      write(chunk, _encoding, done) {
        io.err(String(chunk));
        done();
      },
    });
    Object.assign(output, { isTTY: true, columns: io.width || 80 });
    this.#lines = createInterface({
      input: this.#keys,
      output,
      prompt,
      terminal: true,
      historySize: HISTORY_MAX,
      removeHistoryDuplicates: true,
    });
    this.#lines.on("line", (line) => this.#answer(line.replaceAll(BREAK, "\n")));
    this.#lines.on("close", () => {
      this.#ended = true;
      this.#answer(null);
    });
    this.#lines.on("SIGINT", () => {
      if (this.busy) return this.onInterrupt();
      io.err("\n(Ctrl-D ends the chat)\n");
      this.#lines.write(null, { ctrl: true, name: "u" });
      this.#lines.prompt();
    });
    io.rawInput(true);
    io.err("\u001b[?2004h");
    void this.#read();
  }

  /** Returns the next entry, or null at Ctrl-D. */
  async next(): Promise<string | null> {
    if (this.#ended) return null;
    return await new Promise((resolve) => {
      this.#asking = resolve;
      this.#lines.prompt();
      const ahead = this.#ahead;
      this.#ahead = "";
      if (ahead !== "") this.#keys.write(ahead);
    });
  }

  /** Clears the line so that a reply can be printed. */
  hide(): void {
    this.#io.err(CLEAR_LINE);
  }

  show(): void {
    this.#lines.prompt(true);
  }

  #answer(line: string | null): void {
    const asking = this.#asking;
    this.#asking = null;
    asking?.(line);
  }

  async #read(): Promise<void> {
    const decoder = new TextDecoder();
    for await (const chunk of this.#io.stdin) this.#take(decoder.decode(chunk, { stream: true }));
    this.#lines.close();
  }

  #take(keys: string): void {
    let rest = this.#pasted + keys;
    this.#pasted = "";
    while (rest !== "") {
      const mark = this.#pasting ? PASTE_END : PASTE_START;
      const at = rest.indexOf(mark);
      const piece = at === -1 ? rest : rest.slice(0, at);
      // Waits for the end of the paste, whose mark may arrive in two pieces.
      if (this.#pasting && at === -1) {
        this.#pasted = rest;
        return;
      }
      if (this.#pasting) this.#type(piece.replace(/\r\n?|\n/g, BREAK).replace(/\t/g, "  "));
      else for (const key of splitAtEnters(piece)) this.#type(key);
      if (at === -1) return;
      this.#pasting = !this.#pasting;
      rest = rest.slice(at + mark.length);
    }
  }

  #type(keys: string): void {
    if (this.#asking !== null) this.#keys.write(keys);
    else if (keys.includes(CTRL_C)) {
      this.#ahead = "";
      this.onInterrupt();
    } else this.#ahead += keys;
  }

  [Symbol.dispose](): void {
    this.#lines.close();
    this.#io.err("\u001b[?2004l");
    this.#io.rawInput(false);
  }
}

// Each entry is handled before the next one is read.
function splitAtEnters(keys: string): string[] {
  return keys.match(/[^\r\n]*(?:\r\n?|\n)|[^\r\n]+/g) ?? [];
}
