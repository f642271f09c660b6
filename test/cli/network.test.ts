import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { openApp } from "../harness/service/app.ts";
import { createTempDir, startServer, svc } from "../harness/service/process.ts";
import { ctl } from "../harness/terminal.ts";

const list = (url: string, env: Record<string, string> = {}, ...flags: string[]) =>
  ctl(null, ["worker", "list", ...flags], { env: { SVC_URL: url, SVC_TOKEN: "x", ...env } });

const hasOpenssl = await new Deno.Command("openssl", { args: ["version"] }).output().then(
  () => true,
  () => false,
);

/** Creates a certificate for 127.0.0.1 and its authority as files in a directory. */
async function createCertificates(folder: string): Promise<{ ca: string; cert: string; key: string }> {
  const at = (name: string) => join(folder, name);
  const openssl = async (...args: string[]) => {
    const { success, stderr } = await new Deno.Command("openssl", { args, cwd: folder }).output();
    expect([success, new TextDecoder().decode(stderr)]).toEqual([true, expect.anything()]);
  };
  const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"];
  await openssl(
    ...["req", "-x509", ...key, "-keyout", at("ca.key"), "-out", at("ca.pem"), "-subj", "/CN=test authority"],
  );
  await openssl(
    ...["req", "-x509", ...key, "-CA", at("ca.pem"), "-CAkey", at("ca.key"), "-keyout", at("leaf.key")],
    ...["-out", at("leaf.pem"), "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"],
    ...["-addext", "basicConstraints=critical,CA:FALSE"],
  );
  return { ca: at("ca.pem"), cert: at("leaf.pem"), key: at("leaf.key") };
}

describe("svc ctl and the network (contract 8.14)", () => {
  it("explains four kinds of connection errors in one line each, with exit 6", async () => {
    const refused = await list("http://127.0.0.1:79");
    expect(refused).toEqual({
      code: 6,
      out: "",
      err:
        "svc: Cannot reach the service at http://127.0.0.1:79: it may not be running. Start it with `svc serve`.\n",
    });
    const unknown = await list("http://no-such-host.invalid:8080");
    expect(unknown).toMatchObject({
      code: 6,
      out: "",
      err: expect.stringMatching(/^svc: Cannot find the host no-such-host/),
    });
    await using app = await openApp();
    const noTls = await list(app.url.replace("http:", "https:"));
    expect(noTls).toMatchObject({
      code: 6,
      out: "",
      err: expect.stringMatching(/^svc: Cannot use TLS with https:/),
    });
    for (const { err } of [refused, unknown, noTls]) expect(err.trimEnd().split("\n")).toHaveLength(1);
  });

  it.skipIf(!hasOpenssl)(
    "trusts a private authority with --ca or SVC_CA_FILE, and names it otherwise",
    async () => {
      await using folder = await createTempDir();
      const { ca, cert, key } = await createCertificates(folder.path);
      await using app = await openApp();
      const proxy = Deno.serve({
        hostname: "127.0.0.1",
        port: 0,
        cert: await Deno.readTextFile(cert),
        key: await Deno.readTextFile(key),
        onListen: () => {},
      }, (request) => {
        const { pathname, search } = new URL(request.url);
        return fetch(app.url + pathname + search, {
          headers: { authorization: request.headers.get("authorization") ?? "" },
        });
      });
      const url = `https://127.0.0.1:${proxy.addr.port}`;
      const env = { SVC_TOKEN: await app.token() };
      expect(await list(url, env)).toMatchObject({
        code: 6,
        err: expect.stringMatching(/^svc: Cannot trust the certificate/),
      });
      expect(await list(url, env, "--ca", ca)).toEqual({ code: 0, out: "", err: "" });
      expect(await list(url, { ...env, SVC_CA_FILE: ca })).toEqual({ code: 0, out: "", err: "" });
      const plain = await list(url.replace("https:", "http:"), env);
      expect(plain).toMatchObject({
        code: 6,
        err: expect.stringMatching(/^svc: Cannot use plain HTTP with/),
      });
      await proxy.shutdown();
    },
  );

  it("returns exit 2 for an unreadable certificate file and for one without certificates", async () => {
    await using folder = await createTempDir();
    const empty = join(folder.path, "empty.pem");
    await Deno.writeTextFile(empty, "nothing");
    expect(await list("https://127.0.0.1:79", {}, "--ca", "/no/such.pem")).toEqual({
      code: 2,
      out: "",
      err: "svc: --ca: cannot read /no/such.pem: no such file\n",
    });
    expect(await list("https://127.0.0.1:79", { SVC_CA_FILE: empty })).toMatchObject({
      code: 2,
      err: expect.stringMatching(/^svc: SVC_CA_FILE: .*empty\.pem has no certificate/),
    });
  });

  it.skipIf(Deno.build.os !== "linux")(
    "finds a server whose port comes from the environment, but no killed server",
    async () => {
      await using folder = await createTempDir();
      const server = await startServer({ dataDir: folder.path });
      // The configuration says 8080, but the server took another port.
      const own = { SVC_SERVER__PORT: "8080" };
      const found = await svc(["ctl", "worker", "create", "-n", "Ada", "-q"], {
        dataDir: folder.path,
        env: own,
      });
      expect([found.code, found.err]).toEqual([0, ""]);
      expect((await svc(["health"], { dataDir: folder.path, env: own })).out).toBe("ready\n");
      await server.end("SIGKILL");
      expect(await Deno.stat(join(folder.path, "server.json")).then(() => true)).toBe(true);
      const gone = await svc(["ctl", "worker", "list"], {
        dataDir: folder.path,
        env: { SVC_SERVER__PORT: "79" },
      });
      expect(gone.err).toContain("at http://127.0.0.1:79:");
    },
  );

  it("a run uses only SVC_URL", async () => {
    await using app = await openApp();
    const env = { SVC_RUN_ID: "x", SVC_TOKEN: await app.token() };
    expect(await ctl(app, "worker list", { env })).toMatchObject({
      code: 6,
      err: expect.stringMatching(/SVC_URL is missing in this agent's run\n$/),
    });
  });
});

describe("svc ctl and repeated flags (contract 8.7)", () => {
  it("returns exit 2 for a repeated flag with one value, at any position", async () => {
    await using app = await openApp();
    const wrong = [
      ["worker", "list", "--page", "1", "--page", "1"],
      ["worker", "list", "--name", "a", "--name=b"],
      ["-c", "a.yaml", "worker", "list", "-c", "b.yaml"],
      ["worker", "--config", "a.yaml", "list", "--config", "a.yaml"],
      ["worker", "create", "-n", "a", "--name", "b"],
    ];
    for (const args of wrong) {
      const { code, out, err } = await ctl(app, args);
      expect([args, code, out, err]).toEqual([
        args,
        2,
        "",
        expect.stringMatching(/^svc: --\w+ can be used only once\n$/),
      ]);
    }
    const both = await ctl(app, "queue list --status failed --status cancelled");
    expect(both.code).toBe(0);
    expect((await ctl(app, "worker list --json --json")).code).toBe(0);
    await using folder = await createTempDir();
    const options = { dataDir: folder.path };
    expect(await svc(["serve", "-c", "a", "-c", "b"], options)).toMatchObject({
      code: 2,
      err: "svc: --config can be used only once\n",
    });
    const unit = await svc(["service", "print", "--system", "--name", "a", "--name", "b"], options);
    expect(unit).toMatchObject({ code: 2, err: expect.stringContaining("--name can be used only once") });
  });

  it("a client-side error has no status and no request_id (contract 8.13)", async () => {
    const { err } = await list("http://127.0.0.1:79", {}, "--json");
    expect(JSON.parse(err)).toEqual({
      type: "about:blank#unavailable",
      title: "Unavailable",
      detail: expect.stringContaining("may not be running"),
      code: "unavailable",
    });
  });
});

describe("svc version and help", () => {
  it("prints -v, ctl --version and the help of each command", async () => {
    await using folder = await createTempDir();
    const options = { dataDir: folder.path };
    const { out } = await svc(["version"], options);
    for (const args of [["-v"], ["-V"], ["--version"], ["ctl", "--version"], ["ctl", "-v"]]) {
      expect([args, await svc(args, options)]).toEqual([args, { code: 0, out, err: "" }]);
    }
    for (const name of ["serve", "restore", "health", "version", "completion"]) {
      for (const args of [[name, "--help"], ["help", name]]) {
        expect([args, await svc(args, options)]).toEqual([
          args,
          { code: 0, out: expect.stringMatching(new RegExp(`^Usage: svc ${name}`)), err: "" },
        ]);
      }
    }
  });
});
