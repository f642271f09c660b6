import { createHash } from "node:crypto";
import { createServer, type Socket } from "node:net";
import { once } from "node:events";
import { expect, it } from "vitest";
import { openWire } from "../../src/platform/websocket.ts";

const FRAGMENTS = 300_000;
const GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/** Accepts one WebSocket and lets `talk` write raw frames. */
async function openPlatform(talk: (socket: Socket) => Promise<void>) {
  const server = createServer((socket) => {
    socket.on("error", () => {});
    socket.once("data", (head) => {
      const [, key = ""] = /sec-websocket-key: (.*)\r\n/i.exec(head.toString()) ?? [];
      const accept = createHash("sha1").update(key + GUID).digest("base64");
      socket.write(
        `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
      );
      talk(socket).catch(() => {});
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  return { url: `ws://127.0.0.1:${port}`, [Symbol.dispose]: () => void server.close() };
}

async function write(socket: Socket, bytes: Uint8Array): Promise<boolean> {
  if (socket.destroyed) return false;
  await new Promise<void>((resolve) => socket.write(bytes, () => resolve()));
  return true;
}

async function waitForEnd(url: string): Promise<string> {
  const wire = await openWire(url, 5_000);
  const reason = await new Promise<string>((resolve) => {
    wire.on("error", ({ message }) => resolve(message));
    wire.on("close", () => resolve("closed"));
    wire.on("message", () => resolve("a message"));
  });
  wire.terminate();
  return reason;
}

it.each([["text", 1], ["binary", 2]])(
  "openWire() ends a connection early, when a platform sends a %s message in fragments of one byte",
  async (_kind, opcode) => {
    let sent = 0;
    const block = new Uint8Array(3 * 500).map((_, at) => [0, 1, 97][at % 3] ?? 0);
    using platform = await openPlatform(async (socket) => {
      await write(socket, new Uint8Array([opcode, 1, 97]));
      while (sent < FRAGMENTS && await write(socket, block)) {
        sent += 500;
        await new Promise((resolve) => setTimeout(resolve, 1));
      }
    });
    expect(await waitForEnd(platform.url)).toBe("Too many message fragments");
    expect(sent).toBeLessThan(8_000);
  },
);

it("openWire() takes a message in as many fragments as real platforms send", async () => {
  using platform = await openPlatform(async (socket) => {
    await write(socket, new Uint8Array([1, 1, 97]));
    for (let sent = 2; sent < 1_000; sent++) await write(socket, new Uint8Array([0, 1, 97]));
    await write(socket, new Uint8Array([128, 1, 97]));
  });
  expect(await waitForEnd(platform.url)).toBe("a message");
});
