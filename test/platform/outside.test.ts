// A server at an address from outside can answer anything.
import { expect, it } from "vitest";
import { callOutside, NoAnswerError, RefusedAddressError } from "../../src/base/guarded_fetch.ts";

/** Answers every connection with these bytes and keeps it open. */
async function answering(bytes: string): Promise<{ url: string } & AsyncDisposable> {
  const listener = Deno.listen({ port: 0, hostname: "127.0.0.1" });
  const open: Deno.Conn[] = [];
  void (async () => {
    for await (const connection of listener) {
      open.push(connection);
      await connection.read(new Uint8Array(1_000));
      await connection.write(new TextEncoder().encode(bytes)).catch(() => {});
    }
  })().catch(() => {});
  await Promise.resolve();
  return {
    url: `http://127.0.0.1:${listener.addr.port}/`,
    [Symbol.asyncDispose]: () => {
      listener.close();
      for (const connection of open) connection.close();
      return Promise.resolve();
    },
  };
}

const call = (url: string, allowPrivate = true, resolve?: (name: string) => Promise<string[]>) =>
  callOutside({
    url,
    body: "",
    timeoutMs: 30_000,
    answerMaxBytes: 10,
    allowPrivate,
    ...(resolve === undefined ? {} : { resolve }),
  });

it.each([
  ["101", "HTTP/1.1 101 Switching Protocols\r\nupgrade: h2c\r\nconnection: upgrade\r\n\r\n"],
  ["no HTTP", "SSH-2.0-OpenSSH_9.6\r\n"],
  ["a body that is too large", `HTTP/1.1 200 OK\r\ncontent-length: 11\r\n\r\n${"x".repeat(11)}`],
])("%s fails within the time of the call (contract 11)", async (_what, bytes) => {
  await using server = await answering(bytes);
  const began = performance.now();
  await expect(call(server.url)).rejects.toThrow(NoAnswerError);
  // The time limit of the call is 30 s.
  expect(performance.now() - began).toBeLessThan(15_000);
});

it.each([
  ...["http://0.0.0.0/", "http://[::]/", "http://[fe80::1]/", "http://[fd00::1]/", "http://017700000001/"],
  ...[
    "http://0x7f.1/",
    "http://127.0.0.1./",
    "http://①②⑦.⓪.⓪.①/",
    "http://[::127.0.0.1]/",
    "http://[64:ff9b:1::1]/",
  ],
  ...["http://[2002:7f00:1::]/", "http://[::ffff:0:127.0.0.1]/", "http://100.64.0.1/", "http://224.0.0.1/"],
])("%s is refused before anything is sent [WHK-2]", async (url) => {
  await expect(call(url, false)).rejects.toThrow(RefusedAddressError);
});

it.each(["127.0.0.1", "::ffff:10.0.0.1", "fe80::1%eth0", "64:ff9b::a9fe:a9fe", "0.0.0.0", "169.254.169.254"])(
  "a name with the address %s is refused [WHK-2]",
  async (address) => {
    const resolve = () => Promise.resolve([address]);
    await expect(call("https://rebinding.example/", false, resolve)).rejects.toThrow(RefusedAddressError);
  },
);
