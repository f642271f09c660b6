import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { createTempDir, startServer, svc } from "../../harness/service/process.ts";

/** Listens on a service manager's socket and yields its messages, in order. */
async function* readMessages(path: string): AsyncGenerator<string> {
  const socket = Deno.listenDatagram({ transport: "unixpacket", path });
  try {
    while (true) yield new TextDecoder().decode((await socket.receive())[0]);
  } finally {
    socket.close();
  }
}

describe("svc serve under a service manager", () => {
  it("reports its start, its life signs, and its stop (sd_notify)", async () => {
    await using data = await createTempDir();
    const path = join(data.path, "manager");
    const words = readMessages(path);
    const first = words.next();
    const env = { NOTIFY_SOCKET: path, WATCHDOG_USEC: "400000" };
    await using server = await startServer({ dataDir: data.path, env });
    expect((await first).value).toBe(`READY=1\nSTATUS=ready at ${server.url}`);
    expect((await words.next()).value).toBe("WATCHDOG=1");
    const ended = server.end("SIGTERM");
    let word = await words.next();
    while (word.value === "WATCHDOG=1") word = await words.next();
    expect(word.value).toBe("STOPPING=1\nSTATUS=waiting for runs to finish");
    expect((await ended).code).toBe(0);
    await words.return(undefined);
  });

  it("continues and logs an error if it cannot reach the manager", async () => {
    await using data = await createTempDir();
    const env = { NOTIFY_SOCKET: join(data.path, "nobody") };
    await using server = await startServer({ dataDir: data.path, env });
    expect((await server.end("SIGTERM")).code).toBe(0);
    expect(server.stderr).toContain("Cannot send READY=1");
  });
});

describe("svc health", () => {
  it("exits 0 when the service is ready, and 6 without a service", async () => {
    await using data = await createTempDir();
    const server = await startServer({ dataDir: data.path });
    expect(await svc(["health"], { dataDir: data.path })).toEqual({ code: 0, out: "ready\n", err: "" });
    await server.end("SIGTERM");
    expect(await svc(["health"], { dataDir: data.path })).toMatchObject({ code: 6, out: "not ready\n" });
    expect(await svc(["health", "--frob"], { dataDir: data.path })).toMatchObject({ code: 2, out: "" });
    expect(await svc(["health", "-c", "none.yaml"], { dataDir: data.path })).toMatchObject({
      code: 2,
      out: "",
    });
  });
});
