import { closeConnection } from "./proxy.ts";

/** A TCP connection in front of a service that a test can cut, silence and restore. */
export class Wire implements AsyncDisposable {
  readonly url: string;
  readonly #listener: Deno.TcpListener;
  readonly #target: number;
  readonly #open = new Set<Deno.TcpConn>();
  #isCut = false;
  #silence: PromiseWithResolvers<void> | null = null;

  constructor(target: string) {
    this.#listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
    this.#target = Number(new URL(target).port);
    this.url = `http://127.0.0.1:${this.#listener.addr.port}`;
    void this.#accept();
  }

  /** Ends every connection, and ends each new connection immediately. */
  cut(): void {
    this.#isCut = true;
    for (const connection of this.#open) closeConnection(connection);
    this.#open.clear();
  }

  /** Stops all traffic without ending a connection, so neither end notices. */
  silence(): void {
    this.#silence ??= Promise.withResolvers();
  }

  mend(): void {
    this.#isCut = false;
    this.#silence?.resolve();
    this.#silence = null;
  }

  async #accept(): Promise<void> {
    for await (const near of this.#listener) {
      if (this.#isCut) {
        closeConnection(near);
        continue;
      }
      const far = await Deno.connect({ hostname: "127.0.0.1", port: this.#target }).catch(() => null);
      if (far === null) {
        closeConnection(near);
        continue;
      }
      for (const one of [near, far]) this.#open.add(one);
      const open = () => this.#silence?.promise;
      void pipe(near, far, open);
      void pipe(far, near, open);
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.mend();
    this.cut();
    this.#listener.close();
    return Promise.resolve();
  }
}

async function pipe(
  from: Deno.TcpConn,
  to: Deno.TcpConn,
  open: () => Promise<void> | undefined,
): Promise<void> {
  const held = new TransformStream<Uint8Array, Uint8Array>({
    async transform(piece, controller) {
      await open();
      controller.enqueue(piece);
    },
  });
  await from.readable.pipeThrough(held).pipeTo(to.writable).catch(() => {});
}
