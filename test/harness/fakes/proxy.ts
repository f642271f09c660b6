type Mode = "pass" | "hold" | "hold-writes" | "hold-answers" | "cut-answers" | "refuse" | "trickle";

/** A TCP proxy on loopback in front of a server. The test makes it slow, silent or cut off. */
export class Proxy implements Disposable {
  /**
   * `hold`: nothing passes, as with an unplugged cable. `hold-writes`: like a libSQL server that refuses
   * writes. `hold-answers`: requests arrive, responses don't. `cut-answers`: the connection ends instead of a
   * response. `refuse`: no new connections.
   */
  mode: Mode = "pass";
  /** The number of responses that were cut off or held. */
  lost = 0;
  readonly #listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  readonly #target: () => string | null;
  readonly #open = new Set<Deno.TcpConn>();

  /** `target`: the address of the server, or a function that returns it; null without a server. */
  constructor(target: string | (() => string | null)) {
    this.#target = typeof target === "string" ? () => target : target;
    void this.#accept();
  }

  get url(): string {
    return `http://127.0.0.1:${this.#listener.addr.port}`;
  }

  /** Ends every connection, like a network that fails. */
  cut(): void {
    for (const connection of this.#open) closeConnection(connection);
    this.#open.clear();
  }

  [Symbol.dispose](): void {
    this.#listener.close();
    this.cut();
  }

  async #accept(): Promise<void> {
    for await (const client of this.#listener) {
      if (this.mode === "refuse") {
        closeConnection(client);
        continue;
      }
      void this.#connect(client);
    }
  }

  async #connect(client: Deno.TcpConn): Promise<void> {
    const target = this.#target();
    const server = target === null ? null : await connectTo(new URL(target));
    if (server === null) return closeConnection(client);
    this.#open.add(client).add(server);
    await Promise.all([
      copy(client, server, (bytes) => this.#mayAsk(bytes)),
      copy(server, client, () => this.#mayAnswer(client)),
    ]);
    for (const connection of [client, server]) {
      closeConnection(connection);
      this.#open.delete(connection);
    }
  }

  async #mayAsk(bytes: Uint8Array): Promise<boolean> {
    const writes = this.mode === "hold-writes" && /begin immediate/i.test(new TextDecoder().decode(bytes));
    while (this.mode === "hold" || writes && this.mode === "hold-writes") await pause();
    return this.mode !== "refuse";
  }

  async #mayAnswer(client: Deno.TcpConn): Promise<boolean> {
    if (this.mode === "trickle") await new Promise((resolve) => setTimeout(resolve, 200));
    if (this.mode === "hold-answers" || this.mode === "cut-answers") this.lost++;
    if (this.mode === "cut-answers") closeConnection(client);
    while (this.mode === "hold-answers" || this.mode === "hold") await pause();
    return this.mode !== "refuse";
  }
}

function connectTo({ hostname, port }: URL): Promise<Deno.TcpConn | null> {
  return Deno.connect({ hostname, port: Number(port) }).catch(() => null);
}

async function copy(
  from: Deno.TcpConn,
  to: Deno.TcpConn,
  mayPass: (bytes: Uint8Array) => Promise<boolean>,
): Promise<void> {
  const buffer = new Uint8Array(64 * 1024);
  try {
    for (let size = await from.read(buffer); size !== null; size = await from.read(buffer)) {
      if (!await mayPass(buffer.subarray(0, size))) return;
      for (let sent = 0; sent < size;) sent += await to.write(buffer.subarray(sent, size));
    }
  } catch {
    // A side has closed its connection.
  } finally {
    closeConnection(to);
  }
}

/** Closes a connection that may already be closed. */
export function closeConnection(connection: Deno.TcpConn): void {
  try {
    connection.close();
  } catch {
    // The connection is already closed.
  }
}

function pause(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 20));
}
