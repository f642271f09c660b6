import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { openApp } from "../harness/service/app.ts";
import { createTempDir, svc } from "../harness/service/process.ts";
import { ctl, splitWords } from "../harness/terminal.ts";

/** Starts a server that answers every connection with these bytes and closes it. */
function startAnsweringServer(bytes: string): { url: string } & AsyncDisposable {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const serving = (async () => {
    for await (const connection of listener) {
      await connection.read(new Uint8Array(64 * 1024));
      await connection.write(new TextEncoder().encode(bytes)).catch(() => {});
      connection.close();
    }
  })();
  const { port } = listener.addr as Deno.NetAddr;
  return {
    url: `http://127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      listener.close();
      await serving.catch(() => {});
    },
  };
}

const list = (url: string, ...flags: string[]) =>
  ctl(null, ["worker", "list", ...flags], { env: { SVC_URL: url, SVC_TOKEN: "x" } });

describe("svc ctl and a faulty server (contract 6)", () => {
  it("returns exit 6 if the connection ends within a response", async () => {
    await using server = startAnsweringServer(
      'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 900\r\n\r\n[{"id":',
    );
    const { code, out, err } = await list(server.url);
    expect([code, out, err]).toEqual([
      6,
      "",
      "svc: Cannot finish the request: the connection was lost. Try again.\n",
    ]);
    const json = await list(server.url, "--json");
    expect([json.code, JSON.parse(json.err).code]).toEqual([6, "unavailable"]);
  });

  it("returns exit 6 if the server closes the connection, 1 if another program responds", async () => {
    await using silent = startAnsweringServer("");
    const hungUp = await list(silent.url);
    expect([hungUp.code, hungUp.out]).toEqual([6, ""]);
    expect(hungUp.err.trimEnd().split("\n")).toHaveLength(1);
    await using other = startAnsweringServer("HTTP/1.1 200 OK\r\ncontent-length: 14\r\n\r\n<html>hello</h>");
    const html = await list(other.url);
    expect([html.code, html.out]).toEqual([1, ""]);
    expect(html.err).toMatch(
      /^svc: Cannot read the response with status 200: another program may use this address/,
    );
    await using missing = startAnsweringServer("HTTP/1.1 404 Not Found\r\ncontent-length: 2\r\n\r\nno");
    expect((await list(missing.url)).code).toBe(1);
  });

  it("returns exit 2 for an invalid address, 4 for the key of another server", async () => {
    const bad = await list("not a url");
    expect([bad.code, bad.out]).toEqual([2, ""]);
    expect(bad.err).toMatch(/SVC_URL/);
    // Such a value would change the route or drop the token.
    for (
      const url of [
        "http://h:1/api",
        "http://h:1/api/",
        "http://h:1?x=1",
        "http://ada:secret@h:1",
        " http://h:1",
      ]
    ) {
      const { code, err } = await list(url);
      expect([url, code]).toEqual([url, 2]);
      expect(err).not.toContain("secret@");
    }
    await using app = await openApp();
    await using other = await openApp();
    const wrongKey = await ctl(null, "worker list", {
      env: { SVC_URL: app.url, SVC_DATA_DIR: other.dataDir },
    });
    expect([wrongKey.code, wrongKey.out]).toEqual([4, ""]);
  });
});

/** Returns a stdin without input that reports when the command reads it. */
function createStdin(onRead: () => void): ReadableStream<Uint8Array> {
  return new ReadableStream({ pull: onRead }, { highWaterMark: 0 });
}

describe("svc ctl and its arguments (contract 6)", () => {
  it("names unknown groups, commands, flags and values, each in one line with a suggestion", async () => {
    await using app = await openApp();
    const cases: [string[], RegExp][] = [
      [["wroker"], /unknown command 'wroker'\. Did you mean `svc ctl worker`\?/],
      [["worker", "delte"], /Did you mean `svc ctl worker delete`\?/],
      [
        ["worker", "list", "--pagesize", "3"],
        /^svc: unknown flag '--pagesize'\. Did you mean `--page-size`\?/,
      ],
      [["worker", "list", "--page"], /^svc: --page needs a value\n$/],
      [["worker", "list", "-c"], /^svc: --config needs a value\n$/],
      [["worker", "list", "--pag", "1"], /unknown flag '--pag'/],
      [["help", "wroker"], /^svc: unknown command 'wroker'\. Did you mean `svc ctl worker`\?/],
      [["help", "worker", "lst"], /^svc: unknown command 'lst'\. Did you mean `svc ctl worker list`\?/],
      [["constructor"], /^svc: unknown command 'constructor'/],
      [["worker", "create", "-n", "X", "--department", "no,such"], /^svc: --department: no department/],
      [["worker", "create", "-n", "X", "--scopes", "x"], /^svc: --scopes: must look like/],
      [["worker", "get"], /missing required argument 'id'/],
      [["worker", "get", ""], /the id must not be empty/],
      [["worker", "get", ".."], /the id cannot be "\.\."/],
      [["worker", "create"], /--name is required/],
      [["worker", "create", "--name", ""], /--name must not be empty/],
      [["worker", "create", "--name"], /--name needs a value/],
      [["worker", "create", "-n", "x", "--engine-args", "nope"], /must have the form <engine>=<args>/],
      [["worker", "list", "--page", "x"], /--page: "x" is not a whole number/],
      [["worker", "list", "--id", ""], /--id must not be empty/],
      [
        ["worker", "list", "-c", "/no/such.yaml"],
        /Cannot read the configuration \/no\/such.yaml: no such file/,
      ],
      [["worker"], /Usage: svc ctl worker/],
      [[], /Usage: svc ctl/],
      [["chat", " "], /the text must not be empty/],
      [["worker", "get", "a", "b"], /too many arguments/],
      [
        ["task", "list", "--worker-id", "x", "--status", "done"],
        /--status: "done" is not one of scheduled, pending/,
      ],
      [["memory", "get", "--scope", ""], /--scope must not be empty/],
      [["department", "get", ".."], /cannot be "\.\."/],
      [["execution", "list", "--page", "0"], /^svc: --page: must be at least 1\n$/],
      [["message", "list", "--page-size", "101"], /^svc: --page-size: must be at most 100\n$/],
    ];
    for (const [args, wanted] of cases) {
      const { code, out, err } = await ctl(app, args);
      expect([args, code, out, err]).toEqual([args, 2, "", expect.stringMatching(wanted)]);
    }
  });

  it("returns exit 130 after an interrupt while it reads stdin, in a pipe and on a terminal", async () => {
    await using app = await openApp();
    const commands = [["message", "send", "--message-id", "m", "--stdin"], ["system", "password", "--stdin"]];
    for (const args of commands) {
      for (const terminal of [false, true]) {
        const interrupt = new AbortController();
        const options = { stdin: createStdin(() => interrupt.abort()), terminal, signal: interrupt.signal };
        expect(await ctl(app, args, options), args.join(" ")).toEqual({ code: 130, out: "", err: "" });
      }
    }
    const ended = await ctl(app, "system password", { stdin: "\u0004", terminal: true });
    expect(ended).toMatchObject({ code: 2, err: expect.stringContaining("nothing was entered") });
  });

  it("flags of every command may be anywhere after ctl, each at most once (contract 8.7)", async () => {
    await using app = await openApp();
    const { id } = await app.call("POST /api/workers", { name: "Ada" });
    for (const args of [["-q", "worker", "list"], ["worker", "-q", "list"], ["worker", "list", "-q"]]) {
      expect(await ctl(app, args), args.join(" ")).toEqual({ code: 0, out: `${id}\n`, err: "" });
    }
    for (const args of [["-c", "nope.yaml", "worker", "list"], ["worker", "--config=nope.yaml", "list"]]) {
      expect(await ctl(app, args), args.join(" ")).toMatchObject({ code: 2, out: "" });
    }
    await using folder = await createTempDir();
    await Deno.writeTextFile(`${folder.path}/good.yaml`, "{}");
    const twice = ["-c", "nope.yaml", "worker", "list", "-q", "-c", `${folder.path}/good.yaml`];
    expect(await ctl(app, twice)).toEqual({ code: 2, out: "", err: "svc: --config can be used only once\n" });
  });

  it("a flag with several values accepts commas and repetition (interface 4.2)", async () => {
    await using app = await openApp();
    const made = await ctl(
      app,
      "worker create -n Ada --scopes read:workers,read:tasks --scopes=write:tasks --json",
    );
    expect(JSON.parse(made.out).scopes).toEqual(["read:workers", "read:tasks", "write:tasks"]);
    const { code, err } = await ctl(app, "execution list --status failed --status lost");
    expect([code, err]).toEqual([2, expect.stringMatching(/--status: "lost" is not one of/)]);
  });

  it("names the part of a value that the service refuses", async () => {
    await using app = await openApp();
    const create = ["worker", "create", "-n", "a"];
    const count = await ctl(app, [...create, "--runs-on", "x", "--resources", "cpus=two,gpus=1"]);
    expect([count.code, count.err]).toEqual([2, "svc: --resources cpus: must be a number\n"]);
    const none = await ctl(app, [...create, "--runs-on", "x", "--resources", "cpus=0"]);
    expect([none.code, none.err]).toEqual([2, "svc: --resources cpus: must be more than 0\n"]);
    const typo = await ctl(app, [...create, "--runs-on", "x", "--resources", "gpu=1"]);
    expect([typo.code, typo.err]).toEqual([
      2,
      "svc: --resources gpu: unknown; known: cpus, memory, gpus, time\n",
    ]);
    for (const path of ["relative/path", "./project", "project.git"]) {
      const repo = await ctl(app, [...create, "--repo", path]);
      expect([repo.code, repo.err]).toEqual([
        2,
        `svc: --repo: ${JSON.stringify(path)} must be an address, an absolute path or a JSON object\n`,
      ]);
    }
    const label = await ctl(app, [...create, "--runs-on", "x,Y"]);
    expect([label.code, label.err]).toEqual([2, expect.stringMatching(/^svc: --runs-on: must be 1-50 of/)]);
  });

  it("times are int64: bounds beyond all times mean no bound (interface 4.2)", async () => {
    await using app = await openApp();
    const far = "9223372036854775807";
    const args = ["execution", "list", "--started-from", "0", "--started-to", far, "--completed-to", far];
    expect(await ctl(app, args)).toEqual({ code: 0, out: "", err: "" });
    expect((await ctl(app, ["execution", "list", "--started-to", `${far}0`])).code).toBe(2);
  });

  it("with --json a usage error is one JSON object, too", async () => {
    await using app = await openApp();
    for (const args of [["worker", "lst"], ["wroker"], ["worker", "list", "--nope"], ["worker", "get"]]) {
      const { code, out, err } = await ctl(app, [...args, "--json"]);
      expect([code, out]).toEqual([2, ""]);
      expect(JSON.parse(err)).toMatchObject({ code: "invalid_request", detail: expect.any(String) });
    }
  });

  it("a value can start with dashes, contain line breaks and emoji, and be as long as the server allows", async () => {
    await using app = await openApp();
    for (const value of ["--json", "-q", "a\nb\tc", "🚀 ~'\"$(x)", "x".repeat(200_000)]) {
      const save = splitWords("memory save --scope global --key k --json --value");
      const saved = await ctl(app, [...save, value]);
      expect([saved.code, saved.err]).toEqual([0, ""]);
      expect(JSON.parse(saved.out).value).toBe(value);
    }
    const long = await ctl(app, `memory save --scope global --key k --value ${"x".repeat(300_000)}`);
    expect([long.code, long.err]).toEqual([2, "svc: --value: must be at most 262144 bytes\n"]);
  });

  it("config commands name the place and the error, and return exit 2", async () => {
    await using dir = await createTempDir();
    const path = join(dir.path, "config.yaml");
    const run = (...args: string[]) => svc(["ctl", ...args], { dataDir: dir.path });
    expect(await run("config", "validate")).toMatchObject({ code: 0 });
    await Deno.writeTextFile(path, "server:\n  prot: 1\n");
    const faulty = await run("config", "validate");
    expect([faulty.code, faulty.out]).toEqual([2, ""]);
    expect(faulty.err).toMatch(/config\.yaml:2:3: server\.prot: unknown key. Known keys: host, port/);
    await Deno.writeTextFile(path, "server: [\n");
    expect((await run("config", "show")).err).toMatch(/config\.yaml:\d+:\d+/);
    expect((await run("worker", "list")).code).toBe(2);
    await Deno.writeTextFile(path, "log: {}\n---\nlog: {}\n");
    expect((await run("config", "validate")).err).toMatch(/config\.yaml:2:1: has more than one document\n$/);
    await Deno.writeTextFile(path, "server: [\n");
    const nowhere = await run("config", "path", "-c", "nowhere.yaml");
    expect([nowhere.code, nowhere.out, nowhere.err]).toEqual([
      2,
      "",
      expect.stringMatching(/Cannot find the file .*nowhere.yaml/),
    ]);
    const missing = await run("config", "show", "-c", "nowhere.yaml");
    expect([missing.code, missing.err]).toEqual([2, expect.stringMatching(/nowhere\.yaml: no such file/)]);
    await Deno.writeTextFile(
      path,
      "auth: {jwt_secret: 0123456789abcdef0123456789abcdef}\nshutdown_grace: 2m\n",
    );
    // The configuration has no ids, and an empty line would not be an id.
    expect(await run("config", "show", "-q")).toMatchObject({ code: 0, out: "" });
    const shown = await run("config", "show");
    expect(shown.out).toContain("shutdown_grace\t2m\n");
    expect(shown.out).toContain("auth.jwt_secret\t(set, not shown)\n");
    expect(shown.out).not.toContain("0123456789abcdef");
    expect(JSON.parse((await run("config", "schema")).out).properties.limits).toBeDefined();
  });
});
