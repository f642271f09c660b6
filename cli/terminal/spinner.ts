import type { Io } from "./io.ts";
import type { Style } from "./style.ts";

const FRAMES = [..."⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"];
const FRAME_MS = 120;
const CLEAR_LINE = "\r\u001b[2K";

/** One line on stderr that says what is waited for, and since when. Writes nothing unless stderr is a terminal that can redraw. */
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

  /** Says from now on that this is waited for; the seconds begin anew when it is something else. */
  show(words: string): void {
    if (words !== this.#words) this.#since = performance.now();
    this.#words = words;
    if (!this.#on) return;
    this.#draw();
    this.#timer ??= setInterval(() => this.#draw(), FRAME_MS);
  }

  /** Takes the line away, for something to be printed; the next show() or tick brings it back. */
  clear(): void {
    if (this.#drawn) this.#io.err(CLEAR_LINE);
    this.#drawn = false;
  }

  /** Takes the line away for good. */
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
    // A line that wraps could not be taken away again.
    const room = Math.max((this.#io.width || 80) - 1, 1);
    this.#io.err(CLEAR_LINE + this.#style.dim([...words].slice(0, room).join("")));
    this.#drawn = true;
  }

  [Symbol.dispose](): void {
    this.stop();
  }
}
