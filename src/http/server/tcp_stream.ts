import { Buffer } from "node:buffer";
import { Duplex } from "node:stream";

const READ_BUFFER_BYTES = 32 * 1024;
const ONE_PACKET_BYTES = 16 * 1024;
// An honest client that was refused stops sending when it has read the answer.
const LINGER_MAX_BYTES = 64 * 1024 * 1024;
const LINGER_MAX_MS = 10_000;
const LINGER_IDLE_MS = 500;

type Done = (error?: Error | null) => void;

/**
 * A TCP connection as the stream that node:http takes connections as. Its own `net.Server` never accepts again after the process was out of
 * files (tried on Deno 2.9.6), so `Connections` accepts and hands over.
 *
 * end() closes it lingering: a connection with unread bytes that is closed at once is reset, and a client that is refused while it sends
 * may lose the answer (reliability UPL-1).
 */
export class TcpStream extends Duplex {
  readonly #connection: Deno.TcpConn;
  #buffer = new Uint8Array(READ_BUFFER_BYTES);
  #reading: Promise<void> = Promise.resolve();

  constructor(connection: Deno.TcpConn) {
    super();
    this.#connection = connection;
    connection.setNoDelay();
  }

  get remoteAddress(): string {
    return this.#connection.remoteAddr.hostname;
  }

  /** node:http asks for this. `Connections` closes idle connections itself. */
  setTimeout(): this {
    return this;
  }

  override _read(): void {
    this.#reading = this.#readOnce();
  }

  override _write(piece: Uint8Array, _encoding: string, done: Done): void {
    this.#write(piece).then(() => done(), done);
  }

  override _writev(pieces: { chunk: Uint8Array }[], done: Done): void {
    this.#writeAll(pieces.map(({ chunk }) => chunk)).then(() => done(), done);
  }

  override _final(done: Done): void {
    this.#linger().catch(() => {}).finally(() => {
      done();
      this.destroy();
    });
  }

  override _destroy(error: Error | null, done: Done): void {
    try {
      this.#connection.close();
    } catch (closing) {
      if (!(closing instanceof Deno.errors.BadResource)) throw closing;
    }
    done(error);
  }

  async #readOnce(): Promise<void> {
    try {
      const size = await this.#connection.read(this.#buffer);
      if (this.writableEnded && !this.readableEnded) return;
      this.push(size === null ? null : this.#take(size));
    } catch (error) {
      this.destroy(error as Error);
    }
  }

  /** The bytes just read: a copy of few, the buffer itself of many. */
  #take(size: number): Uint8Array {
    if (size < READ_BUFFER_BYTES / 4) return Buffer.from(this.#buffer.subarray(0, size));
    const full = this.#buffer.subarray(0, size);
    this.#buffer = new Uint8Array(READ_BUFFER_BYTES);
    return full;
  }

  /** Headers and a short body go out as one packet. A copy of large pieces would only be garbage. */
  async #writeAll(pieces: Uint8Array[]): Promise<void> {
    const bytes = pieces.reduce((sum, { length }) => sum + length, 0);
    if (bytes <= ONE_PACKET_BYTES) return await this.#write(Buffer.concat(pieces, bytes));
    for (const piece of pieces) await this.#write(piece);
  }

  async #write(bytes: Uint8Array): Promise<void> {
    for (let at = 0; at < bytes.length;) at += await this.#connection.write(bytes.subarray(at));
  }

  /** Says that no more follows, and drops what still comes until the client stops, sends too much, or takes too long. */
  async #linger(): Promise<void> {
    await this.#connection.closeWrite();
    if (this.readableEnded) return;
    const until = performance.now() + LINGER_MAX_MS;
    const { promise: idle, resolve } = Promise.withResolvers<null>();
    let timer = setTimeout(() => resolve(null), LINGER_IDLE_MS);
    try {
      await Promise.race([this.#reading, idle]);
      for (let bytes = 0; bytes < LINGER_MAX_BYTES && performance.now() < until;) {
        clearTimeout(timer);
        timer = setTimeout(() => resolve(null), LINGER_IDLE_MS);
        const size = await Promise.race([this.#connection.read(this.#buffer), idle]);
        if (size === null) return;
        bytes += size;
      }
    } finally {
      clearTimeout(timer);
    }
  }
}
