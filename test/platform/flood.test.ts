import { expect, it } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import { Connection } from "../../src/platform/connection.ts";
import { listen } from "../../src/platform/monitored_socket.ts";

it.each([["small", 30_000, 1], ["large", 40, 4 * 1024 * 1024]])(
  "listen() ends the socket and drops its queue, when %s messages arrive faster than they are taken",
  async (_kind, count, size) => {
    await using server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen: () => {} }, (request) => {
      const { socket, response } = Deno.upgradeWebSocket(request);
      socket.onerror = () => {};
      socket.onopen = () => {
        for (let at = 0; at < count && socket.readyState === 1; at++) socket.send(new Uint8Array(size));
      };
      return response;
    });
    const stop = new AbortController();
    const busy = Promise.withResolvers<void>();
    let taken = 0;
    const listening = listen({
      platform: "Test",
      url: `ws://127.0.0.1:${server.addr.port}`,
      clock: systemClock,
      connection: new Connection("test", systemClock),
      signal: stop.signal,
      pingMs: 60_000,
      isReadyWhenOpen: true,
      take: () => {
        taken++;
        return busy.promise;
      },
    });
    const end = setTimeout(() => stop.abort(), 5_000);
    await expect(listening).rejects.toThrow("Test sent messages faster than the service can take them");
    clearTimeout(end);
    busy.resolve();
    // A queue that was not dropped would be taken before the next timer.
    await new Promise((resolve) => setTimeout(resolve, 0));
    expect(taken).toBeLessThanOrEqual(1);
  },
);
