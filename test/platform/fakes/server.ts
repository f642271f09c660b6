// deno-lint-ignore no-explicit-any
export type Json = any;

interface Attended {
  greet?: (socket: WebSocket) => void;
  take: (data: Json, socket: WebSocket) => void;
  gone?: (socket: WebSocket) => void;
}

/** Base of the fakes: a server on loopback that records requests, and what the real platform would refuse. */
export abstract class FakeServer implements AsyncDisposable {
  /** Messages of the bot in their current form. */
  readonly sent: Json[] = [];
  readonly faults: string[] = [];
  /** Chats with a rate limit. */
  readonly limited = new Set<string>();
  /** The key is invalid. */
  revoked = false;
  readonly sockets = new Set<WebSocket>();
  readonly #server = Deno.serve(
    { port: 0, hostname: "127.0.0.1", onListen: () => {} },
    (request) => this.answer(request),
  );

  get url(): string {
    return `http://127.0.0.1:${this.#server.addr.port}`;
  }

  protected abstract answer(request: Request): Response | Promise<Response>;

  drop(): void {
    for (const socket of this.sockets) socket.close();
  }

  protected accept(request: Request, { greet, take, gone }: Attended): Response {
    const { socket, response } = Deno.upgradeWebSocket(request, { idleTimeout: 0 });
    const close = () => {
      this.sockets.delete(socket);
      gone?.(socket);
    };
    socket.binaryType = "arraybuffer";
    socket.onopen = () => {
      this.sockets.add(socket);
      greet?.(socket);
    };
    socket.onmessage = ({ data }) => take(data, socket);
    socket.onclose = close;
    socket.onerror = close;
    return response;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.sockets) socket.close();
    await this.#server.shutdown();
  }
}

/** Drops the connection before the answer. */
export function dropConnection(): Response {
  const broken = new ReadableStream({ start: (one) => one.error(new Error("lost")) });
  return new Response(broken, { headers: { "content-length": "10" } });
}
