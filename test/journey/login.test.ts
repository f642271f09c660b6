import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { createTempDir, startServer, svc } from "../harness/service/process.ts";
import { PASS_HASH } from "../harness/service/client.ts";

vi.setConfig({ testTimeout: 360_000 });

const URL_OF_NOBODY = "http://127.0.0.1:1";

/** Runs `svc ctl` as on another machine: no data directory of the service, and a separate login file. */
function elsewhere(home: string, env: Record<string, string> = {}) {
  return async (args: string[], stdin?: string) =>
    await svc(["ctl", ...args], {
      dataDir: home,
      env: { XDG_CONFIG_HOME: join(home, "config"), ...env },
      ...(stdin === undefined ? {} : { stdin }),
    });
}

describe("svc ctl from another machine (contract 9)", () => {
  it("logs in, works for longer than an access token is valid, logs out, and is refused", async () => {
    await using data = await createTempDir();
    await using home = await createTempDir();
    await using server = await startServer({
      dataDir: data.path,
      env: { SVC_AUTH__PASSWORD_HASH: PASS_HASH, SVC_AUTH__ACCESS_TTL: "2s" },
    });
    const ctl = elsewhere(home.path);
    const before = await ctl(["worker", "list"]);
    expect(before.code).not.toBe(0);
    const wrong = await ctl(["login", server.url, "--password-stdin"], "wrong\n");
    expect([wrong.code, wrong.err]).toEqual([4, "svc: Cannot log in: wrong username or password\n"]);
    const login = await ctl(["login", server.url, "--password-stdin"], "pass\n");
    expect([login.code, login.out]).toEqual([0, ""]);
    const file = join(home.path, "config/svc/hosts.yaml");
    expect(((await Deno.stat(file)).mode ?? 0) & 0o777).toBe(0o600);
    const tokenBefore = (await Deno.readTextFile(file)).match(/access_token: (\S+)/)?.[1];
    expect((await ctl(["worker", "create", "-n", "Ada", "-q"])).code).toBe(0);
    await new Promise((resolve) => setTimeout(resolve, 2_500));
    expect((await ctl(["worker", "list"])).out).toContain("\tAda\t");
    expect((await Deno.readTextFile(file)).match(/access_token: (\S+)/)?.[1]).not.toBe(tokenBefore);
    expect((await ctl(["whoami", "--json"])).out).toContain('"by":"login"');
    expect((await ctl(["context", "list"])).out).toContain(`${server.url}\tadmin\ttrue\n`);
    const unknown = await ctl(["context", "use", URL_OF_NOBODY]);
    expect([unknown.code, unknown.err]).toEqual([3, expect.stringContaining("Run `svc ctl login")]);
    const refresh = (await Deno.readTextFile(file)).match(/refresh_token: (\S+)/)?.[1] ?? "";
    expect((await ctl(["logout"])).code).toBe(0);
    expect(await Deno.readTextFile(file)).not.toContain(refresh);
    const after = await elsewhere(home.path, { SVC_URL: server.url })(["worker", "list"]);
    expect([after.code, after.err]).toEqual([
      4,
      expect.stringContaining(`Run \`svc ctl login ${server.url}\``),
    ]);
    const renewed = await fetch(`${server.url}/api/auth/refresh`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ refresh_token: refresh }),
    });
    expect(renewed.status).toBe(401);
  });

  it("CI: a script needs only a token in a file, within its scopes, until it is revoked", async () => {
    await using data = await createTempDir();
    await using home = await createTempDir();
    await using server = await startServer({ dataDir: data.path });
    const admin = async (...args: string[]) => await svc(["ctl", ...args], { dataDir: data.path });
    expect((await admin("worker", "create", "-n", "Ada", "-q")).code).toBe(0);
    const file = join(home.path, "ci.token");
    const scopes = "read:workers,read:tasks,write:tasks,read:executions";
    const made = await admin("token", "create", "-n", "ci", "--scopes", scopes, "--token-file", file, "-q");
    expect(made.code).toBe(0);
    expect(((await Deno.stat(file)).mode ?? 0) & 0o777).toBe(0o600);
    expect(made.out).not.toContain(".");
    const ci = elsewhere(home.path, { SVC_URL: server.url, SVC_TOKEN_FILE: file });
    const worker = (await ci(["worker", "list", "-q"])).out.trim();
    const task = [
      "task",
      "create",
      "--message-id",
      "ci",
      "--worker-id",
      worker,
      "--instruction",
      "hello from CI",
    ];
    const ran = await ci([...task, "--type", "immediate", "--wait"]);
    expect([ran.code, ran.err]).toEqual([0, expect.anything()]);
    expect((await ci(["memory", "get", "--scope", "global"])).code).toBe(4);
    const none = await elsewhere(home.path, { SVC_URL: server.url, SVC_TOKEN_FILE: "/nowhere" })([
      "worker",
      "list",
    ]);
    expect([none.code, none.err]).toEqual([
      2,
      expect.stringContaining("SVC_TOKEN_FILE: cannot read /nowhere"),
    ]);
    const entries = (await admin("audit", "--actor", "token:ci")).out.trim().split("\n").map((line) =>
      JSON.parse(line)
    );
    expect(entries).toEqual([expect.objectContaining({ kind: "task.created", address: "127.0.0.1" })]);
    expect((await admin("token", "delete", made.out.trim())).code).toBe(0);
    expect((await ci(["worker", "list"])).code).toBe(4);
  });

  it("sends a token that ctl signs only to the service that uses its key", async () => {
    await using data = await createTempDir();
    await using _server = await startServer({ dataDir: data.path });
    const seen: (string | null)[] = [];
    const other = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, (request) => {
      seen.push(request.headers.get("authorization"));
      return Response.json({ code: "unauthenticated", detail: "no" }, { status: 401 });
    });
    const env = { SVC_URL: `http://127.0.0.1:${other.addr.port}` };
    const asked = await svc(["ctl", "worker", "list"], { dataDir: data.path, env });
    await other.shutdown();
    expect([asked.code, seen]).toEqual([4, [null]]);
    expect(asked.err).toContain(": no token. ");
    expect((await svc(["ctl", "worker", "list"], { dataDir: data.path })).code).toBe(0);
  });
});
