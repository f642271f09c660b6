// A server at an address from outside can answer anything.
import { expect, it } from "vitest";
import { isPublicAddress, RefusedAddressError } from "../../src/base/address.ts";
import { callOutside, NoAnswerError } from "../../src/platform/guarded_fetch.ts";

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

const call = (url: string, options: Partial<Parameters<typeof callOutside>[0]> = {}) =>
  callOutside({ url, body: "", timeoutMs: 5_000, answerMaxBytes: 10, allowPrivate: false, ...options });

it.each([
  "127.0.0.1",
  "127.8.8.8",
  "10.1.2.3",
  "172.16.0.1",
  "172.31.255.255",
  "192.168.1.1",
  "169.254.169.254",
  "100.64.0.1",
  "0.0.0.0",
  "224.0.0.1",
  "255.255.255.255",
  "198.18.0.1",
  "192.0.2.1",
  "::",
  "::1",
  "fe80::1",
  "fe80::1%eth0",
  "fc00::1",
  "fd12::1",
  "ff02::1",
  "::ffff:127.0.0.1",
  "::ffff:7f00:1",
  "::127.0.0.1",
  "64:ff9b::7f00:1",
  "64:ff9b::10.0.0.1",
  "64:ff9b:1::a00:1",
  "2002:7f00:1::",
  "2001:db8::1",
  "2001::1",
  "100::1",
  "[::1]",
  "",
  "localhost",
  "1.2.3",
  "fec0::1",
])("%s is not public [WHK-2]", (address) => expect(isPublicAddress(address)).toBe(false));

it.each([
  "1.1.1.1",
  "8.8.8.8",
  "172.32.0.1",
  "100.128.0.1",
  "2606:4700::1111",
  "2a00::1",
  "::ffff:8.8.8.8",
  "64:ff9b::808:808",
])(
  "%s is public",
  (address) => expect(isPublicAddress(address)).toBe(true),
);

it.each([
  ["101", "HTTP/1.1 101 Switching Protocols\r\nupgrade: h2c\r\nconnection: upgrade\r\n\r\n"],
  ["no HTTP", "SSH-2.0-OpenSSH_9.6\r\n"],
  ["a body that is too large", `HTTP/1.1 200 OK\r\ncontent-length: 11\r\n\r\n${"x".repeat(11)}`],
])("%s fails within the time of the call (contract 11)", async (_what, bytes) => {
  await using server = await answering(bytes);
  const began = performance.now();
  await expect(call(server.url, { timeoutMs: 30_000, allowPrivate: true })).rejects.toThrow(NoAnswerError);
  // The time limit of the call is 30 s.
  expect(performance.now() - began).toBeLessThan(15_000);
});

it.each([
  "http://127.0.0.1/",
  "http://2130706433/",
  "http://0x7f000001/",
  "http://0177.0.0.1/",
  "http://127.1/",
  "http://0/",
  "http://[::1]/",
  "http://[::ffff:127.0.0.1]/",
  "http://[64:ff9b::7f00:1]/",
  "http://169.254.169.254/latest/meta-data",
  "ftp://example.org/",
  "file:///etc/passwd",
  "http://user:word@example.org/",
  "nothing",
  "http://0.0.0.0/",
  "http://[::]/",
  "http://[fe80::1]/",
  "http://[fd00::1]/",
  "http://017700000001/",
  "http://0x7f.1/",
  "http://127.0.0.1./",
  "http://①②⑦.⓪.⓪.①/",
  "http://[::127.0.0.1]/",
  "http://[64:ff9b:1::1]/",
  "http://[2002:7f00:1::]/",
  "http://[::ffff:0:127.0.0.1]/",
  "http://100.64.0.1/",
  "http://224.0.0.1/",
])("%s is refused before anything is sent [WHK-2]", async (url) => {
  await expect(call(url)).rejects.toThrow(RefusedAddressError);
});

it.each(["127.0.0.1", "::ffff:10.0.0.1", "fe80::1%eth0", "64:ff9b::a9fe:a9fe", "0.0.0.0", "169.254.169.254"])(
  "a name with the address %s is refused [WHK-2]",
  async (address) => {
    const resolve = () => Promise.resolve([address]);
    await expect(call("https://rebinding.example/", { resolve })).rejects.toThrow(RefusedAddressError);
  },
);

it("a name with one private address among others is refused [WHK-2]", async () => {
  const both = () => Promise.resolve(["93.184.216.34", "127.0.0.1"]);
  await expect(call("http://both.example/", { resolve: both })).rejects.toThrow(/127\.0\.0\.1, which is not/);
});

it("a name is resolved once: the service connects to the checked address [WHK-2]", async () => {
  const came: string[] = [];
  const listen = (hostname: string, port: number) =>
    Deno.serve({ port, hostname, onListen: () => {} }, () => {
      came.push(hostname);
      return new Response("ok");
    });
  await using checked = listen("127.0.0.1", 0);
  await using other = listen("127.0.0.2", checked.addr.port);
  let asked = 0;
  const answer = await call(`http://rebinding.example:${other.addr.port}/`, {
    // In place of public addresses.
    allowPrivate: true,
    resolve: () => Promise.resolve([asked++ === 0 ? "127.0.0.1" : "127.0.0.2"]),
  });
  expect([answer.status, asked, came]).toEqual([200, 1, ["127.0.0.1"]]);
});

it("a name server that does not answer takes no longer than the time limit of the call", async () => {
  await expect(call("http://silent.example/", { timeoutMs: 1_000, resolve: () => new Promise(() => {}) }))
    .rejects.toThrow(
      /silent\.example has no address: no answer within 1 s/,
    );
});

it("a redirect is not followed [WHK-2]", async () => {
  const server = Deno.serve(
    { port: 0, hostname: "127.0.0.1", onListen: () => {} },
    () => new Response(null, { status: 302, headers: { location: "http://127.0.0.1:1/" } }),
  );
  const url = `http://127.0.0.1:${server.addr.port}/`;
  const answer = await call(url, { allowPrivate: true });
  expect(answer.status).toBe(302);
  await server.shutdown();
});
