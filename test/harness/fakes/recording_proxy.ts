import { closeConnection } from "./proxy.ts";

/** An HTTP proxy that records what it is sent and answers 502, like one that cannot reach a private address. */
export class RecordingProxy implements Disposable {
  /** The text of each request. */
  readonly requests: string[] = [];
  readonly #listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });

  constructor() {
    void this.#accept();
  }

  get url(): string {
    return `http://127.0.0.1:${this.#listener.addr.port}`;
  }

  [Symbol.dispose](): void {
    this.#listener.close();
  }

  async #accept(): Promise<void> {
    for await (const client of this.#listener) void this.#answer(client);
  }

  async #answer(client: Deno.TcpConn): Promise<void> {
    const buffer = new Uint8Array(16 * 1024);
    const size = await client.read(buffer).catch(() => null);
    this.requests.push(new TextDecoder().decode(buffer.subarray(0, size ?? 0)));
    const answer = "HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    await client.write(new TextEncoder().encode(answer)).catch(() => {});
    closeConnection(client);
  }
}
