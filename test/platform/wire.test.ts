import { expect, it } from "vitest";
import { openWire } from "../../src/platform/websocket.ts";

it("openWire() limits a message to 16 MiB, without compression (contract 10.4)", async () => {
  let asked: string | null = "nothing came";
  await using server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen: () => {} }, (request) => {
    asked = request.headers.get("sec-websocket-extensions");
    const { socket, response } = Deno.upgradeWebSocket(request);
    socket.onopen = () => {
      socket.send(new Uint8Array(16 * 1024 * 1024));
      socket.send(new Uint8Array(16 * 1024 * 1024 + 1));
    };
    return response;
  });
  const wire = await openWire(`ws://127.0.0.1:${server.addr.port}`, 5_000);
  const came: number[] = [];
  const ended = new Promise<string>((resolve) => {
    wire.on("error", ({ message }) => resolve(message));
    wire.on("close", () => resolve("closed"));
    wire.on("message", (data) => {
      came.push((data as unknown as Uint8Array).length);
      if (came.length === 2) resolve("both came");
    });
  });
  expect(await ended).toMatch(/payload/i);
  expect(came).toEqual([16 * 1024 * 1024]);
  expect(asked).toBe(null);
  wire.terminate();
});
