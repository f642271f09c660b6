import { Buffer } from "node:buffer";
import { Duplex } from "node:stream";

// An idle connection keeps a buffer for its next read, so the buffer is small until one was full.
const IDLE_BUFFER_BYTES = 4 * 1024;
const BUSY_BUFFER_BYTES = 32 * 1024;
const ONE_PACKET_BYTES = 16 * 1024;
// A well-behaved client that is refused stops sending when it has read the answer.
const LINGER_MAX_BYTES = 64 * 1024 * 1024;
const LINGER_MAX_MS = 10_000;
const LINGER_IDLE_MS = 500;

type Done = (error?: Error | null) => void;

/** A connection over TCP or a Unix socket. */
export type PortConnection = Deno.TcpConn | Deno.UnixConn;

/** Returns the client's IP address, or "" for a Unix socket. */
export function readPeerAddress({ remoteAddr }: PortConnection): string {
  return remoteAddr.transport === "tcp" ? remoteAddr.hostname : "";
}

/**
 * A connection as a stream for node:http. The `net.Server` of node:http accepts no connection after the process ran out of files once
 * (tried on Deno 2.9.6), so `Connections` accepts them and creates this stream.
 *
 * end() lingers: the kernel resets a connection that is closed with unread bytes, and a client that is refused while it sends may lose the
 * answer (reliability UPL-1).
 */
export class TcpStream extends Duplex {
  readonly #connection: PortConnection;
  #buffer = new Uint8Array(IDLE_BUFFER_BYTES);
  #reading: Promise<void> = Promise.resolve();

  constructor(connection: PortConnection) {
    super();
    this.#connection = connection;
    if ("setNoDelay" in connection) connection.setNoDelay();
  }

  get remoteAddress(): string {
    return readPeerAddress(this.#connection);
  }

  /** Does nothing: node:http calls it, but `Connections` closes idle connections. */
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

  /** Returns the bytes just read: a copy of few, the buffer itself of many. */
  #take(size: number): Uint8Array {
    const { length } = this.#buffer;
    const bytes = this.#buffer.subarray(0, size);
    if (size < length / 4) return Buffer.from(bytes);
    this.#buffer = new Uint8Array(size === length ? BUSY_BUFFER_BYTES : length);
    return bytes;
  }

  /** Sends headers and a short body as one packet. Large pieces are not copied. */
  async #writeAll(pieces: Uint8Array[]): Promise<void> {
    const bytes = pieces.reduce((sum, { length }) => sum + length, 0);
    if (bytes <= ONE_PACKET_BYTES) return await this.#write(Buffer.concat(pieces, bytes));
    for (const piece of pieces) await this.#write(piece);
  }

  async #write(bytes: Uint8Array): Promise<void> {
    for (let at = 0; at < bytes.length;) at += await this.#connection.write(bytes.subarray(at));
  }

  /** Closes the sending half, and drops incoming bytes until the client stops, sends too much, or takes too long. */
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
