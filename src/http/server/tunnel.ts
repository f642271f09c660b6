import type { TcpStream } from "./tcp_stream.ts";

// A model may think for minutes before its next word.
const TUNNEL_IDLE_MAX_MS = 900_000;
const TUNNEL_MAX_MS = 24 * 3_600_000;
const TUNNEL_MAX_BYTES = 16 * 1024 * 1024 * 1024;
const PIECE_BYTES = 64 * 1024;

/** Copies both ways between a client and a host until both have finished, a limit is reached, or `signal` aborts. Never throws. */
export async function copyTunnel(
  client: TcpStream,
  outside: Deno.Conn,
  head: Uint8Array,
  signal: AbortSignal,
): Promise<void> {
  let bytes = 0;
  let idle: ReturnType<typeof setTimeout> | undefined;
  const cut = () => {
    client.destroy();
    try {
      outside.close();
    } catch {
      // The host's connection is closed already.
    }
  };
  const count = (size: number) => {
    bytes += size;
    clearTimeout(idle);
    if (bytes > TUNNEL_MAX_BYTES) cut();
    else idle = setTimeout(cut, TUNNEL_IDLE_MAX_MS);
  };
  const late = setTimeout(cut, TUNNEL_MAX_MS);
  signal.addEventListener("abort", cut, { once: true });
  if (signal.aborted) cut();
  count(0);
  try {
    await Promise.all([sendToHost(client, outside, head, count), sendToClient(outside, client, count)]);
  } catch {
    // The client or the host has closed the connection.
  } finally {
    clearTimeout(idle);
    clearTimeout(late);
    signal.removeEventListener("abort", cut);
    cut();
  }
}

async function sendToHost(
  client: TcpStream,
  outside: Deno.Conn,
  head: Uint8Array,
  count: (size: number) => void,
): Promise<void> {
  await writeAll(outside, head);
  // The iterator would otherwise destroy the client's connection when the client has closed its sending half only.
  for await (const piece of client.iterator({ destroyOnReturn: false }) as AsyncIterable<Uint8Array>) {
    count(piece.length);
    await writeAll(outside, piece);
  }
  await outside.closeWrite();
}

async function sendToClient(
  outside: Deno.Conn,
  client: TcpStream,
  count: (size: number) => void,
): Promise<void> {
  for (;;) {
    const piece = new Uint8Array(PIECE_BYTES);
    const size = await outside.read(piece);
    if (size === null) break;
    count(size);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    client.write(piece.subarray(0, size), (error) => error ? reject(error) : resolve());
    await promise;
  }
  await new Promise<void>((resolve) => client.end(() => resolve()));
}

async function writeAll(connection: Deno.Conn, bytes: Uint8Array): Promise<void> {
  for (let at = 0; at < bytes.length;) at += await connection.write(bytes.subarray(at));
}
