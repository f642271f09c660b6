import { networkInterfaces } from "node:os";
import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { buildProxyBypass } from "../../src/base/proxy.ts";
import { RecordingProxy } from "../harness/fakes/recording_proxy.ts";
import { createTempDir, startServer, svc } from "../harness/service/process.ts";

vi.setConfig({ testTimeout: 180_000 });

const NAMES = ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"];

describe("behind a company's proxy (contract-3 20.6)", () => {
  it("every command reaches the local service directly, and the proxy gets no request and no token", async () => {
    await using folder = await createTempDir();
    using proxy = new RecordingProxy();
    const dataDir = folder.path;
    const proxies = Object.fromEntries(
      [...NAMES, "HTTPS_PROXY", "https_proxy"].map((name) => [name, proxy.url]),
    );
    await using server = await startServer({ dataDir, env: { ...proxies, DENO_NO_UPDATE_CHECK: "1" } });
    const port = new URL(server.url).port;
    const run = (args: string[], env: Record<string, string> = proxies, stdin?: string) =>
      svc(args, {
        dataDir,
        env: { XDG_CONFIG_HOME: dataDir, DENO_NO_UPDATE_CHECK: "1", ...env },
        ...(stdin === undefined ? {} : { stdin }),
      });

    for (const name of NAMES) {
      expect(await run(["ctl", "worker", "list"], { [name]: proxy.url })).toMatchObject({ code: 0, err: "" });
    }
    const elsewhere = { HTTP_PROXY: proxy.url, NO_PROXY: "example.com", no_proxy: "example.org" };
    expect((await run(["ctl", "worker", "list"], elsewhere)).code).toBe(0);
    expect(await run(["health"])).toMatchObject({ code: 0, out: "ready\n" });
    expect(JSON.parse((await run(["doctor", "--json"])).out).checks.map(({ name }: { name: string }) => name))
      .toContain("stages");
    expect((await run(["ctl", "system", "backup", join(dataDir, "b.tar")])).code).toBe(0);
    const initialize = {
      protocolVersion: "2025-06-18",
      capabilities: {},
      clientInfo: { name: "test", version: "1" },
    };
    const call = { jsonrpc: "2.0", id: 1, method: "initialize", params: initialize };
    expect((await run(["mcp"], proxies, `${JSON.stringify(call)}\n`)).out).toContain("serverInfo");

    // Each form of a loopback address is reached directly, also with another token.
    for (const host of ["localhost", "127.0.0.1", "[::ffff:127.0.0.1]", "127.1", "2130706433"]) {
      const env = { ...proxies, SVC_URL: `http://${host}:${port}`, SVC_TOKEN: "x" };
      expect([host, (await run(["ctl", "worker", "list"], env)).code]).toEqual([host, 4]);
    }
    for (const host of ["127.9.9.9", "[::1]", "a.localhost"]) {
      await run(["ctl", "worker", "list"], { ...proxies, SVC_URL: `http://${host}:${port}`, SVC_TOKEN: "x" });
    }
    expect(proxy.requests).toEqual([]);

    const env = { ...proxies, SVC_URL: "http://svc.example.com", SVC_TOKEN: "remote" };
    await run(["ctl", "worker", "list"], env);
    // The client repeats a request without a response.
    expect(proxy.requests.length).toBeGreaterThan(0);
    for (const request of proxy.requests) expect(request).toMatch(/^GET http:\/\/svc\.example\.com\//);
  });

  const own = Object.values(networkInterfaces()).flat()
    .find((one) => one?.family === "IPv4" && !one.internal)?.address;
  it.skipIf(own === undefined)(
    "a token that ctl signs never goes to the proxy, when the service listens on a network address",
    async () => {
      await using folder = await createTempDir();
      using proxy = new RecordingProxy();
      const dataDir = folder.path;
      await using _server = await startServer({ dataDir, env: { SVC_SERVER__HOST: own ?? "" } });
      const env = { XDG_CONFIG_HOME: dataDir, HTTP_PROXY: proxy.url, SVC_SERVER__HOST: own ?? "" };
      expect(await svc(["ctl", "worker", "list"], { dataDir, env })).toMatchObject({ code: 0, err: "" });
      expect(proxy.requests).toEqual([]);
    },
  );
});

describe("buildProxyBypass()", () => {
  it("adds loopback addresses to both lists, and keeps every other entry", () => {
    const made = buildProxyBypass({
      https_proxy: "http://p",
      NO_PROXY: "a.example, b.example",
      no_proxy: "c.example",
    });
    expect(made.NO_PROXY).toBe(made.no_proxy);
    expect(made.NO_PROXY?.split(",")).toEqual(
      [
        ...["a.example", "b.example", "c.example", "localhost", ".localhost", "localhost."],
        ...["127.0.0.1", "127.0.0.0/8", "::1", "::ffff:127.0.0.0/104"],
      ],
    );
    for (const name of ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"]) {
      expect([name, buildProxyBypass({ [name]: "http://p" }).NO_PROXY]).toEqual([
        name,
        expect.stringContaining("127.0.0.1"),
      ]);
    }
    expect(buildProxyBypass({ HTTP_PROXY: "http://p", NO_PROXY: "*" }).NO_PROXY?.split(",")).toContain("*");
    expect(buildProxyBypass({ HTTP_PROXY: "http://p", ...made })).toEqual(made);
  });

  it("changes nothing without a proxy", () => {
    expect(buildProxyBypass({ HTTP_PROXY: "", NO_PROXY: "a.example" })).toEqual({});
  });
});
