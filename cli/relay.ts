// Connects the loopback of a box to the service (contract-3 21). It imports nothing, because every start of a boxed run waits for it.

const PIECE_BYTES = 64 * 1024;
// After a failed accept, mostly for lack of file descriptors.
const ACCEPT_PAUSE_MS = 100;

/**
 * `svc relay <port> <socket>`: listens on the box's own 127.0.0.1 and forwards each connection to the Unix socket of the run. Prints one line
 * when it listens, and never ends: the kernel ends it together with the box.
 */
export async function relay([port = "", socket = ""]: string[]): Promise<number> {
  // The path of a Unix socket has 107 bytes at most, and a data directory may be longer.
  const at = socket.lastIndexOf("/");
  let listener: Deno.TcpListener;
  try {
    Deno.chdir(socket.slice(0, at) || "/");
    listener = Deno.listen({ hostname: "127.0.0.1", port: Number(port) });
  } catch (error) {
    console.error(
      `svc: Cannot relay port ${port} to ${socket}: ${error instanceof Error ? error.message : error}`,
    );
    return 1;
  }
  Deno.stdout.writeSync(new TextEncoder().encode("listening\n"));
  for (;;) {
    try {
      void forward(await listener.accept(), socket.slice(at + 1));
    } catch {
      await new Promise((resolve) => setTimeout(resolve, ACCEPT_PAUSE_MS));
    }
  }
}

async function forward(client: Deno.Conn, path: string): Promise<void> {
  let service: Deno.Conn | null = null;
  try {
    service = await Deno.connect({ transport: "unix", path });
    await Promise.all([copy(client, service), copy(service, client)]);
  } catch {
    // The client or the service has closed the connection.
  } finally {
    client.close();
    service?.close();
  }
}

async function copy(from: Deno.Conn, to: Deno.Conn): Promise<void> {
  const piece = new Uint8Array(PIECE_BYTES);
  for (let size = await from.read(piece); size !== null; size = await from.read(piece)) {
    for (let at = 0; at < size;) at += await to.write(piece.subarray(at, size));
  }
  await to.closeWrite();
}
