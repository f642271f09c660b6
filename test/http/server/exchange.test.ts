import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Connections } from "../../../src/http/server/connections.ts";
import { bindPort } from "../../../src/http/server/listener.ts";
import { waitUntil } from "../../harness/wait.ts";

let connections: Connections;
const errors: string[] = [];
let cancelled = 0;

beforeAll(() => {
  const limits = { total: 100, perAddress: 100, proxies: [] };
  connections = new Connections(bindPort({ host: "127.0.0.1", port: 0 }), limits, {
    handle: answer,
    onError: (error) => errors.push(String(error)),
    onFull: () => new Response(null, { status: 503 }),
  });
});

afterAll(() => connections.close(1_000));

async function answer(request: Request): Promise<Response> {
  const { pathname } = new URL(request.url);
  switch (pathname) {
    case "/read":
      return new Response(await request.text().catch(() => "cut off"));
    case "/broken":
      return new Response(brokenStream());
    case "/events":
      return new Response(
        new ReadableStream({
          start: (controller) => controller.enqueue(new TextEncoder().encode(": hello\n\n")),
          cancel: () => void cancelled++,
        }),
      );
    case "/late":
      return new Response(new ReadableStream({ cancel: () => void cancelled++ }));
    case "/cookies":
      return new Response("ok", { headers: [["set-cookie", "a=1"], ["set-cookie", "b=2"]] });
  }
  return new Response(`${request.method} ${pathname}`);
}

function brokenStream(): ReadableStream<Uint8Array> {
  let pieces = 0;
  return new ReadableStream({
    async pull(controller) {
      await new Promise((resolve) => setTimeout(resolve, 10));
      if (pieces++ === 2) controller.error(new Error("the disk is gone"));
      else controller.enqueue(new TextEncoder().encode("half"));
    },
  }, { highWaterMark: 0 });
}

/** Reads until the server closes the connection, or until `until` matches. */
async function send(text: string, until?: RegExp): Promise<string> {
  const { hostname, port } = connections.addr;
  using connection = await Deno.connect({ hostname, port });
  await connection.write(new TextEncoder().encode(text));
  const buffer = new Uint8Array(4_096);
  let received = "";
  while (until === undefined || !until.test(received)) {
    const size = await connection.read(buffer).catch(() => null);
    if (size === null) break;
    received += new TextDecoder().decode(buffer.subarray(0, size));
  }
  return received;
}

const HOST = "host: localhost\r\n";
const SMUGGLED = "GET /smuggled HTTP/1.1\r\nhost: localhost\r\n\r\n";

describe("an ambiguous request", () => {
  it.each([
    ["two kinds of length", `content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n${SMUGGLED}`],
    ["two lengths", `content-length: 5\r\ncontent-length: 6\r\n\r\nhello${SMUGGLED}`],
    ["a length that is not a number", `content-length: +5\r\n\r\nhello${SMUGGLED}`],
    ["chunked before another coding", `transfer-encoding: chunked, identity\r\n\r\n0\r\n\r\n${SMUGGLED}`],
    ["a space before the colon", `content-length : 5\r\n\r\nhello${SMUGGLED}`],
    ["a header that is too large", `x: ${"a".repeat(100_000)}\r\n\r\n`],
  ])("is refused, and closes its connection: %s", async (_name, rest) => {
    const received = await send(`POST /read HTTP/1.1\r\n${HOST}${rest}`);
    expect(received).toMatch(/^HTTP\/1\.1 4\d\d /);
    expect(received).not.toContain("smuggled");
  });

  it.each([["no host", ""], ["an invalid host", "host: a b/c\r\n"]])(
    "is refused: %s",
    async (_name, host) => {
      expect(await send(`GET / HTTP/1.1\r\n${host}\r\n`)).toMatch(/^HTTP\/1\.1 400 /);
    },
  );

  it("never reads a host from its path", async () => {
    expect(await send(`GET //elsewhere/x HTTP/1.1\r\n${HOST}\r\n`, /elsewhere/)).toContain(
      "GET //elsewhere/x",
    );
  });
});

describe("a body announced with Expect: 100-continue", () => {
  const expecting = `HTTP/1.1\r\n${HOST}expect: 100-continue\r\n`;

  it("is requested at the first read", async () => {
    const { hostname, port } = connections.addr;
    using connection = await Deno.connect({ hostname, port });
    await connection.write(new TextEncoder().encode(`POST /read ${expecting}content-length: 5\r\n\r\n`));
    const buffer = new Uint8Array(4_096);
    const read = async () => new TextDecoder().decode(buffer.subarray(0, await connection.read(buffer) ?? 0));
    expect(await read()).toBe("HTTP/1.1 100 Continue\r\n\r\n");
    await connection.write(new TextEncoder().encode("hello"));
    expect(await read()).toMatch(/^HTTP\/1\.1 200 [^]*hello$/);
  });

  it("is not requested if the response needs none, and the connection closes", async () => {
    expect(await send(`POST /other ${expecting}content-length: 5000000\r\n\r\n`)).toMatch(/^HTTP\/1\.1 200 /);
  });

  it("is an error for its reader only, if it is cut off", async () => {
    const { hostname, port } = connections.addr;
    for (let i = 0; i < 5; i++) {
      using connection = await Deno.connect({ hostname, port });
      await connection.write(
        new TextEncoder().encode(`POST /read HTTP/1.1\r\n${HOST}content-length: 9\r\n\r\nhe`),
      );
    }
    await waitUntil("all are closed", () => connections.size === 0);
    expect(errors).toEqual([]);
  });
});

describe("a response", () => {
  it("that fails in the middle cuts the connection, so that no client takes it as complete", async () => {
    const received = await send(`GET /broken HTTP/1.1\r\n${HOST}\r\n`);
    expect(received).toContain("half");
    expect(received).not.toMatch(/0\r\n\r\n$/);
    expect(errors.splice(0)).toEqual(["Error: the disk is gone"]);
  });

  it("is cancelled when its client disconnects", async () => {
    const before = cancelled;
    await send(`GET /events HTTP/1.1\r\n${HOST}\r\n`, /hello/);
    await waitUntil("the stream is cancelled", () => cancelled === before + 1);
  });

  it("sends its headers before the first piece of its body exists", async () => {
    const before = cancelled;
    expect(await send(`GET /late HTTP/1.1\r\n${HOST}\r\n`, /\r\n\r\n/)).toMatch(/^HTTP\/1\.1 200 /);
    await waitUntil("the stream is cancelled", () => cancelled === before + 1);
  });

  it("has a length if its body is one text", async () => {
    expect(await send(`GET /x HTTP/1.1\r\n${HOST}\r\n`, /\/x$/)).toMatch(/content-length: 6\r\n/i);
  });

  it("sends every cookie, and keeps the connection open", async () => {
    const twice = `GET /cookies HTTP/1.1\r\n${HOST}\r\n`.repeat(2);
    expect((await send(twice, /(b=2[^]*){2}ok$/)).match(/set-cookie: [ab]=\d/g)).toHaveLength(4);
  });
});
