/** A TCP wire in front of a service, which a test can cut and mend. */
export class Wire implements AsyncDisposable {
  readonly url: string;
  readonly #listener: Deno.TcpListener;
  readonly #target: number;
  readonly #open = new Set<Deno.TcpConn>();
  #isCut = false;

  constructor(target: string) {
    this.#listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
    this.#target = Number(new URL(target).port);
    this.url = `http://127.0.0.1:${this.#listener.addr.port}`;
    void this.#accept();
  }

  /** Ends every connection; new ones end at once. */
  cut(): void {
    this.#isCut = true;
    for (const connection of this.#open) close(connection);
    this.#open.clear();
  }

  mend(): void {
    this.#isCut = false;
  }

  async #accept(): Promise<void> {
    for await (const near of this.#listener) {
      if (this.#isCut) {
        close(near);
        continue;
      }
      const far = await Deno.connect({ hostname: "127.0.0.1", port: this.#target }).catch(() => null);
      if (far === null) {
        close(near);
        continue;
      }
      for (const one of [near, far]) this.#open.add(one);
      void pipe(near, far);
      void pipe(far, near);
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.cut();
    this.#listener.close();
    return Promise.resolve();
  }
}

async function pipe(from: Deno.TcpConn, to: Deno.TcpConn): Promise<void> {
  await from.readable.pipeTo(to.writable).catch(() => {});
}

function close(connection: Deno.TcpConn): void {
  try {
    connection.close();
  } catch {
    // Its other end was faster.
  }
}
