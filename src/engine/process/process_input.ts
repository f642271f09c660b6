/** The stdin of a program, open until somebody closes it. */
export interface ProcessInput {
  write: (text: string) => void;
  close: () => void;
}

const UNREAD_MAX_CHARACTERS = 16 * 1024 * 1024;
// What a text that waits costs beside its letters, about, as letters.
const TEXT_CHARACTERS = 512;

/** A stdin to which texts are written one after the other. A program that reads none of them gets no more. */
export class OpenInput implements ProcessInput {
  readonly #writer: WritableStreamDefaultWriter<Uint8Array>;
  #last: Promise<void> = Promise.resolve();
  #unread = 0;
  #closed = false;

  constructor(stream: WritableStream<Uint8Array>) {
    this.#writer = stream.getWriter();
  }

  write(text: string): void {
    if (this.#closed) return;
    const size = text.length + TEXT_CHARACTERS;
    if (this.#unread + size > UNREAD_MAX_CHARACTERS) return this.close();
    this.#unread += size;
    this.#then(async () => {
      await this.#writer.write(new TextEncoder().encode(text));
      this.#unread -= size;
    });
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#then(() => this.#writer.close());
  }

  // The program may end without reading its stdin.
  #then(step: () => Promise<void>): void {
    this.#last = this.#last.then(step).catch(() => {});
  }
}
