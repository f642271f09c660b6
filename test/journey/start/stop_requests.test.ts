import { expect, it, vi } from "vitest";
import { createTempDir, startServer } from "../../harness/service/process.ts";

vi.setConfig({ testTimeout: 300_000 });

// The long run: SVC_TEST_STOPS=24.
const ROUNDS = Number(Deno.env.get("SVC_TEST_STOPS") ?? 6);
const CLIENTS = 6;

/** Sends one request on a new connection. Returns what the client sees. */
async function ask(port: number, path: string): Promise<string> {
  const connection = await Deno.connect({ hostname: "127.0.0.1", port }).catch(() => null);
  if (connection === null) return "refused";
  try {
    await connection.write(
      new TextEncoder().encode(`GET ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n`),
    );
    const text = await new Response(connection.readable).text();
    const [head = "", body = ""] = text.split("\r\n\r\n");
    const length = Number(/^content-length: (\d+)/im.exec(head)?.[1] ?? NaN);
    if (!head.startsWith("HTTP/1.1 ") || length !== new TextEncoder().encode(body).length) {
      return `cut: ${text}`;
    }
    const status = head.slice(9, 12);
    return status === "503" && !/^retry-after: /im.test(head) ? "503 without retry-after" : status;
  } catch (error) {
    return `reset: ${path} ${error}`;
  }
}

// A server may close a connection that a client leaves idle for longer.
const IDLE_MAX_MS = 100;

/** Sends requests over one connection for as long as the server keeps it. */
async function askOnOne(port: number, seen: string[]): Promise<void> {
  const connection = await Deno.connect({ hostname: "127.0.0.1", port });
  const buffer = new Uint8Array(16 * 1024);
  let idleSince = performance.now();
  try {
    for (;;) {
      const idleMs = performance.now() - idleSince;
      await connection.write(new TextEncoder().encode("GET /readyz HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"));
      const size = await connection.read(buffer);
      if (size === null && idleMs > IDLE_MAX_MS) return connection.close();
      if (size === null) return void seen.push("ended without an answer");
      idleSince = performance.now();
      const text = new TextDecoder().decode(buffer.subarray(0, size));
      seen.push(text.slice(9, 12));
      if (/^connection: close/im.test(text)) return connection.close();
    }
  } catch (error) {
    seen.push(`reset while kept: ${error}`);
  }
}

it(`each request around ${ROUNDS} SIGTERMs gets a whole answer or a refused connection, and none is reset [SHD-5]`, async () => {
  await using folder = await createTempDir();
  for (let round = 0; round < ROUNDS; round++) {
    await using server = await startServer({ dataDir: folder.path });
    const port = Number(new URL(server.url).port);
    const seen: string[] = [];
    let isUp = true;
    const loops = Array.from({ length: CLIENTS }, async (_, index) => {
      const path = ["/livez", "/readyz", "/api/workers"][index % 3] ?? "/livez";
      while (isUp) {
        const what = await ask(port, path);
        seen.push(what);
        if (what === "refused") return;
      }
    });
    const kept = [askOnOne(port, seen), askOnOne(port, seen)];
    await new Promise((resolve) => setTimeout(resolve, 30 + round * 13));
    expect(await server.end("SIGTERM")).toMatchObject({ code: 0 });
    isUp = false;
    await Promise.all([...loops, ...kept]);
    expect([round, seen.filter((what) => !/^(200|401|503|refused)$/.test(what))]).toEqual([round, []]);
    expect(seen).toContain("refused");
  }
});
