import type { Io } from "./io.ts";
import type { Style } from "./style.ts";

const FRAMES = [..."⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"];
const FRAME_MS = 120;
const CLEAR_LINE = "\r\u001b[2K";

/** A line on stderr with the current wait and its duration. Writes only to a terminal that can redraw. */
export class Spinner {
  readonly #io: Io;
  readonly #style: Style;
  readonly #on: boolean;
  #words = "";
  #since = 0;
  #frame = 0;
  #drawn = false;
  #timer: ReturnType<typeof setInterval> | undefined;

  constructor(io: Io, style: Style) {
    this.#io = io;
    this.#style = style;
    this.#on = io.errIsTerminal && io.env.TERM !== "dumb";
  }

  /** Shows a text. The duration restarts when the text changes. */
  show(words: string): void {
    if (words !== this.#words) this.#since = performance.now();
    this.#words = words;
    if (!this.#on) return;
    this.#draw();
    this.#timer ??= setInterval(() => this.#draw(), FRAME_MS);
  }

  /** Clears the line for other output. The next show() or tick draws it again. */
  clear(): void {
    if (this.#drawn) this.#io.err(CLEAR_LINE);
    this.#drawn = false;
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.clear();
  }

  #draw(): void {
    const seconds = Math.floor((performance.now() - this.#since) / 1000);
    const words = `${FRAMES[this.#frame++ % FRAMES.length]} ${this.#words}${
      seconds === 0 ? "" : ` ${seconds} s`
    }`;
    // A wrapped line could not be cleared.
    const room = Math.max((this.#io.width || 80) - 1, 1);
    this.#io.err(CLEAR_LINE + this.#style.dim([...words].slice(0, room).join("")));
    this.#drawn = true;
  }

  [Symbol.dispose](): void {
    this.stop();
  }
}
