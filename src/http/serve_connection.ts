/** HTTP on one connection. */
export interface HttpConnection {
  finished: Promise<void>;
  shutdown: () => Promise<void>;
}

/** Answers the requests of a connection. */
type Serve = (
  connection: Deno.TcpConn,
  signal: AbortSignal,
  handler: (request: Request, info: Deno.ServeHandlerInfo) => Promise<Response>,
  onError: (error: unknown) => Response,
  onListen: () => void,
) => HttpConnection;

/** HTTP on an accepted connection: Deno has it, but without a public name (tried on 2.6 and 2.9). Throws an Error on another Deno. */
export function serveOne(): Serve {
  const { internal } = Deno as unknown as { internal: symbol };
  const { serveHttpOnConnection } =
    (Deno as unknown as Record<symbol, { serveHttpOnConnection?: Serve }>)[internal] ?? {};
  if (serveHttpOnConnection === undefined) {
    throw new Error("Cannot listen: this Deno cannot serve a connection; use 2.6 to 2.9");
  }
  return serveHttpOnConnection;
}

/**
 * A signal that ends a connection when it is cut. Deno's own would report an error that nobody can catch when the client has just
 * closed the connection itself, and that ends the service.
 */
export function cutter(): { signal: AbortSignal; cut: () => void } {
  let listener = () => {};
  const signal = {
    aborted: false,
    addEventListener: (_type: string, call: () => void) => listener = call,
  } as unknown as AbortSignal;
  return {
    signal,
    cut() {
      try {
        listener();
      } catch (error) {
        if (!(error instanceof Deno.errors.BadResource)) throw error;
      }
    },
  };
}
