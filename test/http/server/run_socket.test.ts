import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { openRunSocket } from "../../../src/http/server/run_socket.ts";
import { type App, openApp } from "../../harness/service/app.ts";
import { waitUntil } from "../../harness/wait.ts";

const PUBLIC = "93.184.215.14";
const NAMES: Record<string, string[]> = {
  "api.example.org": [PUBLIC],
  "deep.below.example.net": [PUBLIC],
  "example.net": [PUBLIC],
  "private.example.org": ["10.0.0.1"],
  "mixed.example.org": [PUBLIC, "127.0.0.1"],
  "mapped.example.org": ["::ffff:127.0.0.1"],
  "v6.example.org": ["2606:2800:21f:cb07:6820:80da:af6b:8b2c", PUBLIC],
};
const HOSTS = [
  ...["api.example.org", "*.example.net", "private.example.org", "mixed.example.org", "mapped.example.org"],
  ...["v6.example.org", "unknown.example.org"],
];

let app: App;
let outside: Outside;
let folder: string;
let path: string;
let refused: string[] = [];
/** Where the proxy connected to. */
let routed: string[] = [];

beforeAll(async () => {
  app = await openApp();
  outside = openOutside();
  folder = await Deno.makeTempDir({ prefix: "svc-socket-" });
});
afterAll(async () => {
  outside.close();
  await app[Symbol.asyncDispose]();
  await Deno.remove(folder, { recursive: true });
});
beforeEach(() => {
  refused = [];
  routed = [];
  path = join(folder, crypto.randomUUID().slice(0, 8));
});

function open(hosts: readonly string[] = HOSTS) {
  const { close } = openRunSocket({
    handle: (request, peer) => app.server.fetch(request, peer),
    reach: {
      resolve: (name) =>
        name in NAMES ? Promise.resolve(NAMES[name] ?? []) : Promise.reject(new Error("no such name")),
      route: (address, port) => {
        routed.push(`${address}:${port}`);
        // The port of discard has no listener.
        return { hostname: "127.0.0.1", port: address === PUBLIC ? outside.port : 9 };
      },
    },
  }, { path, owner: null, hosts, onRefused: (words) => refused.push(words) });
  return { [Symbol.dispose]: close, close };
}

/** Sends bytes, and reads until the service closes the connection or `until` matches. */
async function send(text: string, until?: RegExp): Promise<string> {
  using connection = await Deno.connect({ transport: "unix", path });
  await connection.write(new TextEncoder().encode(text));
  return await read(connection, until);
}

async function read(connection: Deno.Conn, until?: RegExp): Promise<string> {
  const buffer = new Uint8Array(65_536);
  let received = "";
  while (until === undefined || !until.test(received)) {
    const size = await connection.read(buffer);
    if (size === null) break;
    received += new TextDecoder().decode(buffer.subarray(0, size));
  }
  return received;
}

const get = (target: string, ...headers: string[]) =>
  send([`GET ${target} HTTP/1.1`, "Connection: close", ...headers, "", ""].join("\r\n"));
const connect = (target: string, rest = "", until?: RegExp) =>
  send(`CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\n\r\n${rest}`, until);

interface Outside {
  port: number;
  /** The requests that arrived, with headers and body. */
  received: string[];
  close: () => void;
}

/** A host outside: answers HTTP, and echoes every other line. */
function openOutside(): Outside {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const received: string[] = [];
  const serve = async (connection: Deno.Conn) => {
    const buffer = new Uint8Array(65_536);
    for (let size = await connection.read(buffer); size !== null; size = await connection.read(buffer)) {
      const text = new TextDecoder().decode(buffer.subarray(0, size));
      received.push(text);
      const answer = text.startsWith("GET /moved")
        ? "HTTP/1.1 302 Found\r\nlocation: http://elsewhere.example.com/\r\ncontent-length: 0\r\n\r\n"
        : /^(GET|POST) /.test(text)
        ? "HTTP/1.1 200 OK\r\nx-outside: yes\r\nconnection: close\r\ncontent-length: 5\r\n\r\nhello"
        : text;
      await connection.write(new TextEncoder().encode(answer));
    }
    await connection.write(new TextEncoder().encode("bye"));
    connection.close();
  };
  void (async () => {
    for await (const connection of listener) void serve(connection).catch(() => {});
  })().catch(() => {});
  return { port: listener.addr.port, received, close: () => listener.close() };
}

describe("the socket of a box", () => {
  it("answers the API with the run's token, and only its owner can connect [BOX-3]", async () => {
    using _ = open([]);
    expect(await get("/api/workers", "Host: localhost")).toMatch(/^HTTP\/1.1 401 /);
    expect(await get("/api/workers", "Host: 127.0.0.1:8080", `Authorization: Bearer ${await app.token()}`))
      .toMatch(/^HTTP\/1.1 200 /);
    // A program that ignores NO_PROXY sends the whole URL.
    expect(await get("http://127.0.0.1:8080/readyz", "Host: 127.0.0.1:8080")).toMatch(/^HTTP\/1.1 200 /);
    expect((Deno.statSync(path).mode ?? 0) & 0o777).toBe(0o600);
  });

  it.each([
    ...["/metrics", "//metrics", "/%6detrics", "/./metrics", "/api/../metrics", "/api/%2e%2e/metrics"],
    ...[
      "/metrics/",
      "/metrics?token=x",
      "/metrics#x",
      "http://localhost/metrics",
      "http://127.0.0.1/%6Detrics",
    ],
    ...["http://[::1]/metrics", "/", "/console", "/console/", "/console/index.html", "/docs", "/%63onsole/"],
    ...["/api/auth", "/api/auth/login", "/api/%61uth/login", "/api/x/../auth/login", "/api//auth/login"],
    ...["/api/%2561uth/login", "/api\\..\\metrics", "/API/auth/login", "/gateway/../metrics"],
  ])("does not answer %s [BOX-3]", async (target) => {
    using _ = open();
    for (const host of ["localhost", "127.0.0.1", "127.0.0.1:80"]) {
      const answer = await get(target, `Host: ${host}`, `Authorization: Bearer ${await app.token()}`);
      expect(answer).toMatch(/^HTTP\/1.1 (400|403|404) /);
      expect(answer).not.toContain("svc_event_loop_lag");
    }
  });

  it("takes no forwarded address for this machine's [BOX-3]", async () => {
    using _ = open();
    expect(await get("/metrics", "Host: localhost", "X-Forwarded-For: 127.0.0.1")).toMatch(/^HTTP\/1.1 403 /);
  });

  it("ends with the run: cuts open connections, and refuses new ones [BOX-3]", async () => {
    const socket = open();
    using tunnel = await Deno.connect({ transport: "unix", path });
    await tunnel.write(new TextEncoder().encode("CONNECT api.example.org:443 HTTP/1.1\r\nHost: x\r\n\r\n"));
    await read(tunnel, /\r\n\r\n/);
    using idle = await Deno.connect({ transport: "unix", path });
    await idle.write(new TextEncoder().encode("GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"));
    await read(idle, /ok/);
    socket.close();
    expect(await read(tunnel).catch(() => "")).toBe("");
    expect(await read(idle).catch(() => "")).toBe("");
    await expect(Deno.connect({ transport: "unix", path })).rejects.toThrow();
  });

  it("says why a path is too long", () => {
    path = join(folder, "x".repeat(108));
    expect(() => open()).toThrow(/at most 107 bytes.*data_dir/);
  });
});

describe("CONNECT", () => {
  it("reaches a named host at the address that was checked [BOX-3]", async () => {
    using _ = open();
    const answer = await connect("api.example.org:443", "early", /early$/);
    expect(answer).toBe("HTTP/1.1 200 Connection established\r\n\r\nearly");
    expect(routed).toEqual([`${PUBLIC}:443`]);
    expect(refused).toEqual([]);
  });

  it("passes on a half-closed connection and the rest of the answer", async () => {
    using _ = open();
    using tunnel = await Deno.connect({ transport: "unix", path });
    await tunnel.write(new TextEncoder().encode("CONNECT api.example.org:80 HTTP/1.1\r\nHost: x\r\n\r\n"));
    await read(tunnel, /\r\n\r\n/);
    await tunnel.closeWrite();
    expect(await read(tunnel)).toBe("bye");
  });

  it("tries the next address of a name", async () => {
    using _ = open();
    NAMES["v6.example.org"] = ["93.184.215.99", PUBLIC];
    expect(await connect("v6.example.org:443", "x", /x$/)).toContain(" 200 ");
    expect(routed).toEqual(["93.184.215.99:443", `${PUBLIC}:443`]);
  });

  it.each([
    ["other.example.com:443", /other\.example\.com:443 is not in the worker's hosts/],
    ["api.example.org:8443", /only the ports 443 and 80/],
    ["api.example.org:22", /only the ports/],
    ["api.example.org.evil.com:443", /is not in/],
    ["evilexample.net:443", /is not in/],
    ["example.net:443", /is not in/],
    ["private.example.org:443", /at 10\.0\.0\.1, which is not a public address/],
    ["mixed.example.org:443", /at 127\.0\.0\.1, which/],
    ["mapped.example.org:443", /at ::ffff:127\.0\.0\.1, which/],
    ["127.0.0.1:443", /is not in/],
    ["[::1]:443", /is not in/],
    ["2130706433:443", /is not in/],
    ["0x7f.1:80", /is not in/],
    ["localhost:80", /is not in/],
    ["169.254.169.254:80", /is not in/],
    ["api.example.org\u0000:443", null],
    ["api.example.org:443@evil.com:443", /is not in/],
    ["api.example.org", /is not in/],
    [":443", /is not in/],
  ])("refuses %s [BOX-3]", async (target, words) => {
    using _ = open();
    expect(await connect(target)).toMatch(/^HTTP\/1.1 40[03] /);
    if (words !== null) expect(refused).toEqual([expect.stringMatching(words)]);
    expect(routed).toEqual([]);
  });

  it("accepts a name below *.name, in capitals and with the final dot", async () => {
    using _ = open();
    NAMES["deep.below.example.net"] = [PUBLIC];
    expect(await connect("Deep.Below.EXAMPLE.net.:443", "x", /x$/)).toContain(" 200 ");
  });

  it("refuses every host without hosts, and says it once for each [BOX-3]", async () => {
    using _ = open([]);
    for (let count = 0; count < 3; count++) await connect("api.example.org:443");
    await connect("api.example.org:80");
    expect(refused).toEqual([
      "network: api.example.org:443 is not in the worker's hosts",
      "network: api.example.org:80 is not in the worker's hosts",
    ]);
  });

  it("answers no request that follows a refusal on the same connection [BOX-3]", async () => {
    using _ = open();
    const answer = await connect("other.example.com:443", "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
    expect(answer.match(/HTTP\/1.1/g)).toHaveLength(1);
    expect(answer).toMatch(/^HTTP\/1.1 403 Forbidden\r\n/);
  });

  it("says 502 for a name without an address, and for a host that does not accept", async () => {
    using _ = open();
    expect(await connect("unknown.example.org:443")).toMatch(/^HTTP\/1.1 502 .*no such name/s);
    NAMES["v6.example.org"] = ["93.184.215.99"];
    expect(await connect("v6.example.org:443")).toMatch(/^HTTP\/1.1 502 /);
    expect(refused).toEqual([]);
  });
});

describe("a plain request through the proxy", () => {
  it("is sent to the checked address, without the headers of the connection", async () => {
    using _ = open();
    outside.received.length = 0;
    const answer = await send(
      "POST http://api.example.org/a?b=c HTTP/1.1\r\nHost: api.example.org\r\nProxy-Connection: keep-alive\r\n" +
        "Proxy-Authorization: Basic x\r\nX-Own: 1\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbody",
    );
    expect(answer).toMatch(/^HTTP\/1.1 200 .*x-outside: yes.*\r\n\r\nhello$/s);
    const arrived = outside.received.join("");
    expect(arrived).toMatch(/^POST \/a\?b=c HTTP\/1.1\r\n/);
    expect(arrived.toLowerCase()).toContain("host: api.example.org\r\n");
    expect(arrived.toLowerCase()).toContain("x-own: 1");
    expect(arrived.toLowerCase()).not.toContain("proxy-");
    expect(arrived).toMatch(/body$/);
    expect(routed).toEqual([`${PUBLIC}:80`]);
  });

  it("returns a redirect to the program, and refuses the host that it names [BOX-3]", async () => {
    using _ = open();
    expect(await get("http://api.example.org/moved", "Host: api.example.org")).toMatch(
      /^HTTP\/1.1 302 .*location: http:\/\/elsewhere/is,
    );
    expect(await get("http://elsewhere.example.com/", "Host: elsewhere.example.com")).toMatch(
      /^HTTP\/1.1 403 /,
    );
    expect(refused).toEqual(["network: elsewhere.example.com:80 is not in the worker's hosts"]);
  });

  it.each([
    "http://private.example.org/",
    "http://api.example.org:8080/",
    "http://10.0.0.1/",
    "http://0/metrics",
    "http://0.0.0.0:8080/metrics",
    "http://[::ffff:127.0.0.1]/metrics",
    "https://api.example.org/",
    "ftp://api.example.org/",
  ])("refuses %s [BOX-3]", async (target) => {
    using _ = open();
    expect(await get(target, "Host: localhost")).toMatch(/^HTTP\/1.1 40[03] /);
    expect(routed).toEqual([]);
  });

  it("goes by the Host header for a path alone, too [BOX-3]", async () => {
    using _ = open();
    expect(await get("/metrics", "Host: svc.example.com")).toMatch(/^HTTP\/1.1 403 /);
    expect(await get("/metrics", "Host: 0.0.0.0")).toMatch(/^HTTP\/1.1 403 /);
  });

  it("ends when the run ends", async () => {
    const socket = open();
    const hanging = Deno.listen({ hostname: "127.0.0.1", port: 0 });
    const port = outside.port;
    outside.port = hanging.addr.port;
    const answer = get("http://api.example.org/", "Host: api.example.org").catch(() => "");
    const arrived = await hanging.accept();
    outside.port = port;
    socket.close();
    expect(await answer).toBe("");
    const buffer = new Uint8Array(1_000);
    await waitUntil(
      "the host sees the end",
      async () => await arrived.read(buffer).catch(() => null) === null,
    );
    arrived.close();
    hanging.close();
  });
});
