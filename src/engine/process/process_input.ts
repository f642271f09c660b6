const UNREAD_MAX_CHARACTERS = 16 * 1024 * 1024;
// Memory of a waiting text in addition to its characters.
const TEXT_CHARACTERS = 512;

/** Writes texts to the stdin of a program in order. After 16 million unread characters the stdin closes. */
export class ProcessInput {
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
