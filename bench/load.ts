const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** A keep-alive connection that repeats one request. It is cheaper than fetch, so that the server is measured and not the client. */
async function talk(url: URL, head: Uint8Array, until: number): Promise<number> {
  const connection = await Deno.connect({ hostname: url.hostname, port: Number(url.port) });
  connection.setNoDelay(true);
  const buffer = new Uint8Array(256 * 1024);
  let answers = 0;
  try {
    while (performance.now() < until) {
      await connection.write(head);
      await readAnswer(connection, buffer);
      answers++;
    }
  } finally {
    connection.close();
  }
  return answers;
}

async function readAnswer(connection: Deno.TcpConn, buffer: Uint8Array): Promise<void> {
  let filled = 0;
  let needed = Infinity;
  while (filled < needed) {
    const read = await connection.read(buffer.subarray(filled));
    if (read === null) throw new Error("the server closed the connection");
    filled += read;
    if (needed !== Infinity) continue;
    const text = decoder.decode(buffer.subarray(0, Math.min(filled, 4_096)));
    const end = text.indexOf("\r\n\r\n");
    if (end === -1) continue;
    if (!text.startsWith("HTTP/1.1 200")) throw new Error(`the server answered ${text.slice(0, 40)}`);
    needed = end + 4 + Number(/content-length: (\d+)/i.exec(text)?.[1] ?? NaN);
  }
}

/** Answers per second of `GET url` over the given number of connections. */
export async function rate(
  url: string,
  options: { token?: string; connections?: number; seconds?: number } = {},
): Promise<number> {
  const { token, connections = 8, seconds = 2 } = options;
  const target = new URL(url);
  const head = encoder.encode(
    `GET ${target.pathname}${target.search} HTTP/1.1\r\nhost: ${target.host}\r\n` +
      `${token === undefined ? "" : `authorization: Bearer ${token}\r\n`}\r\n`,
  );
  const warmUntil = performance.now() + 500;
  await Promise.all(Array.from({ length: connections }, () => talk(target, head, warmUntil)));
  const started = performance.now();
  const until = started + seconds * 1_000;
  const counts = await Promise.all(Array.from({ length: connections }, () => talk(target, head, until)));
  return counts.reduce((sum, count) => sum + count, 0) / ((performance.now() - started) / 1_000);
}
