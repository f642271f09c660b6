// deno-lint-ignore no-explicit-any
export type Json = any;

interface SocketHandlers {
  /** Sends the first message. The unacknowledged events follow. */
  greet?: (socket: WebSocket) => void;
  take: (data: Json, socket: WebSocket) => void;
  gone?: (socket: WebSocket) => void;
}

/** Base of the fakes: a server on loopback that records messages, and requests that the real platform would refuse. */
export abstract class FakeServer<Mode = "lost" | number> implements AsyncDisposable {
  /** Messages of the bot in their current form. */
  readonly sent: Json[] = [];
  readonly faults: string[] = [];
  /** Answers of the next sends, before normal ones. `lost`: accepts the message and drops the connection. */
  readonly modes: Mode[] = [];
  readonly uploads: { name: string; text: string; chat?: string }[] = [];
  /** Files of people by id: bytes, or the status of a failed download. `hang`: the download never ends. */
  readonly files = new Map<string, Uint8Array<ArrayBuffer> | number | "hang">();
  /** Chats with a rate limit. */
  readonly limited = new Set<string>();
  /** The key is invalid. */
  revoked = false;
  readonly sockets = new Set<WebSocket>();
  /** Number of tickets. Each opens one socket. */
  opened = 0;
  /** Unacknowledged events by id. The next socket gets them again. */
  readonly waiting = new Map<string, Json>();
  readonly #tickets = new Set<string>();
  #next = 1;
  readonly #server = Deno.serve(
    { port: 0, hostname: "127.0.0.1", onListen: () => {} },
    (request) => this.answer(request),
  );

  get url(): string {
    return `http://127.0.0.1:${this.#server.addr.port}`;
  }

  get socketUrl(): string {
    return this.url.replace("http", "ws");
  }

  protected abstract answer(request: Request): Response | Promise<Response>;

  protected createId(prefix = ""): string {
    return `${prefix}${this.#next++}`;
  }

  protected createTicket(): string {
    this.opened++;
    const ticket = this.createId("t/+=");
    this.#tickets.add(ticket);
    return ticket;
  }

  /** Checks a ticket, which is valid once. */
  protected useTicket(ticket: string | null): boolean {
    return this.#tickets.delete(ticket ?? "");
  }

  /** Sends an event over the newest socket, and again over each new one until the acknowledgement. */
  protected announce(id: string, event: Json): void {
    this.waiting.set(id, event);
    const socket = [...this.sockets].at(-1);
    if (socket !== undefined) this.transmit(socket, id, event);
  }

  /** Sends an event in the form of the platform. */
  protected transmit(_socket: WebSocket, _id: string, _event: Json): void {}

  protected download(id: string): Response {
    const file = this.files.get(id);
    if (file === "hang") return new Response(new ReadableStream());
    return typeof file === "object" ? new Response(file) : new Response("no", { status: file ?? 404 });
  }

  /** Makes the token expire, on a platform with tokens. */
  expire(): void {}

  drop(): void {
    for (const socket of this.sockets) socket.close();
  }

  protected accept(request: Request, { greet, take, gone }: SocketHandlers): Response {
    const { socket, response } = Deno.upgradeWebSocket(request, { idleTimeout: 0 });
    const close = () => {
      this.sockets.delete(socket);
      gone?.(socket);
    };
    socket.binaryType = "arraybuffer";
    socket.onopen = () => {
      this.sockets.add(socket);
      greet?.(socket);
      for (const [id, event] of this.waiting) this.transmit(socket, id, event);
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
