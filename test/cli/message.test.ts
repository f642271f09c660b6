import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { type App, openApp, PASSWORD } from "../harness/service/app.ts";
import { createTempDir } from "../harness/service/process.ts";
import { ctl } from "../harness/terminal.ts";

async function createConversation(app: App) {
  await app.call("POST /api/workers", { name: "Ada" });
  const session = await app.call("POST /api/local/sessions");
  const { message_id } = await app.call(`POST /api/local/sessions/${session.id}/messages`, {
    content: "hello",
  });
  await app.settle();
  return { session, message: message_id as string };
}

describe("svc ctl message (interface 4.2)", () => {
  it("sends text, a file, or both, one file per call", async () => {
    await using app = await openApp();
    await using dir = await createTempDir();
    const { session, message } = await createConversation(app);
    const file = join(dir.path, 'отчёт "1".txt');
    await Deno.writeTextFile(file, "data".repeat(100_000));
    const send = (args: string[], stdin = "", terminal = false) =>
      ctl(app, ["message", "send", "--message-id", message, ...args], { stdin, terminal });
    expect((await send(["--stdin"], "text\n")).out).toContain("content\ttext\n");
    expect((await send(["--media-path", file])).out).toContain("content\t\n");
    const both = await send(["--stdin", "--media-path", file, "--json"], "see this");
    expect(JSON.parse(both.out)).toMatchObject({
      content: "see this",
      media: { size: 400_000, mime: "text/plain", original_name: 'отчёт "1".txt' },
    });
    const shown = await send(["--media-path", file], "", true);
    expect(shown.err).toMatch(/\r.*\[█+ *\] \d+ %/);
    expect(shown.err).toMatch(/100 %\n$/);
    const history = await app.call(`GET /api/local/sessions/${session.id}/messages`);
    expect(history.filter((one: { role: string }) => one.role === "bee")).toHaveLength(5);
    const name = JSON.parse(both.out).media.name;
    expect((await app.send(`GET /api/local/sessions/${session.id}/media/${name}`)).body).toHaveLength(
      400_000,
    );
  });

  it("accepts any text: quotes, dashes, emoji, 200 KB; and explains the limits", async () => {
    await using app = await openApp();
    const { message } = await createConversation(app);
    const send = (stdin: string) =>
      ctl(app, `message send --message-id ${message} --stdin --json`, { stdin });
    for (const text of ["--json", "🚀 'a' \"b\" $HOME `x` \\n", "a\n\nb", "x".repeat(200_000)]) {
      expect(JSON.parse((await send(text)).out).content).toBe(text);
    }
    const long = await send("x".repeat(256 * 1024 + 1));
    expect([long.code, long.out]).toEqual([2, ""]);
    expect(JSON.parse(long.err).detail).toMatch(/--media-path/);
    expect((await send(" \n")).code).toBe(2);
  });

  it("refuses missing flags and files, and unknown messages", async () => {
    await using app = await openApp();
    const { message } = await createConversation(app);
    const cases: [string[], number, RegExp][] = [
      [["--message-id", message], 2, /specify --stdin or --media-path/],
      [["--stdin"], 2, /--message-id is required/],
      [["--message-id", "", "--stdin"], 2, /--message-id must not be empty/],
      [["--message-id", "nobody", "--stdin"], 2, /--message-id: no message has the id "nobody"/],
      [["--message-id", message, "--media-path", "/nowhere/a"], 2, /cannot read \/nowhere\/a: no such file/],
      [["--message-id", message, "--media-path", "/tmp"], 2, /\/tmp is not a file/],
      [["--message-id", message, "--media-path", ""], 2, /--media-path must not be empty/],
    ];
    for (const [args, code, err] of cases) {
      const called = await ctl(app, ["message", "send", ...args], { stdin: "x" });
      expect([args, called.code, called.out, called.err]).toEqual([
        args,
        code,
        "",
        expect.stringMatching(err),
      ]);
      expect(called.err.trimEnd().split("\n")).toHaveLength(1);
    }
    expect((await ctl(app, "message list --status done")).err).toMatch(/"done" is not one of received/);
    expect((await ctl(app, "message trace nobody")).code).toBe(3);
    expect((await ctl(app, "message trace ''")).code).toBe(2);
  });

  it("trace reads from top to bottom: message, routing with its reason, task, execution, reply", async () => {
    await using app = await openApp();
    const { message } = await createConversation(app);
    const rows = (await ctl(app, `message trace ${message}`)).out.trimEnd().split("\n").map((row) =>
      row.split("\t")
    );
    expect(rows.map((row) => row[1])).toEqual(["message", "routing", "task", "execution", "reply"]);
    expect(rows[1]?.[5]).toBe("Ada is the only worker");
    expect((await ctl(app, `message trace ${message}`, { terminal: true })).out).toMatch(
      /AT.*STEP.*ID.*STATUS.*\n.*\d\d:\d\d:\d\d\.\d{3}/,
    );
    // A file without text appears by its name.
    await using folder = await createTempDir();
    await Deno.writeTextFile(`${folder.path}/plan.txt`, "x");
    await ctl(app, ["message", "send", "--message-id", message, "--media-path", `${folder.path}/plan.txt`]);
    expect((await ctl(app, `message trace ${message}`)).out.trimEnd().split("\t").at(-1)).toMatch(
      /plan\.txt$/,
    );
  });
});

describe("svc ctl memory, department and events (interface 4.2, contract 6)", () => {
  it("memory get prints the bare value in a pipe, and all entries, however many", async () => {
    await using app = await openApp();
    const save = ["memory", "save", "--scope", "global", "--key"];
    expect((await ctl(app, [...save, "tone", "--value", "a\nb"])).code).toBe(0);
    expect((await ctl(app, "memory get --scope global --key tone")).out).toBe("a\nb\n");
    expect((await ctl(app, [...save, "empty", "--value", ""])).code).toBe(0);
    await app.db.write([{
      sql: `insert into memory (scope, key, value, updated_at)
        with recursive n (i) as (select 1 union all select i + 1 from n where i < 250)
        select 'many', printf('k%03d', i), i, 0 from n`,
      args: [],
    }]);
    const all = await ctl(app, "memory get --scope many -q");
    expect(all.out.trimEnd().split("\n")).toHaveLength(250);
    expect(JSON.parse((await ctl(app, "memory get --scope many --json")).out)).toHaveLength(250);
    expect((await ctl(app, "memory get --scope global --key nothing")).code).toBe(3);
    expect((await ctl(app, "memory save --scope global --key x")).err).toMatch(/--value is required/);
  });

  it("department list draws a tree for people, and prints parents in pipes", async () => {
    await using app = await openApp();
    const make = (...args: string[]) => ctl(app, ["department", "create", "-n", ...args, "-q"]);
    const { out: top } = await make("Acme");
    await make("Labs", "--parent", "acme");
    const seen = await ctl(app, "department list", { terminal: true });
    expect(seen.out).toMatch(/Acme +/);
    expect(seen.out).toMatch(/ {2}Labs +/);
    const rows = (await ctl(app, "department list")).out.trimEnd().split("\n").map((row) => row.split("\t"));
    expect(rows.map((row) => [row[1], row[2]])).toEqual([["Acme", ""], ["Labs", top.trim()]]);
    expect((await ctl(app, "department update Acme --parent Labs")).code).toBe(5);
    expect((await ctl(app, "department delete Acme")).code).toBe(5);
    expect((await ctl(app, "department get Nowhere")).code).toBe(3);
    expect((await make("labs")).code).toBe(5);
    expect((await make("a,b")).code).toBe(2);
  });

  it("events for people have a subject and readable data; in pipes all ids", async () => {
    await using app = await openApp();
    const { message } = await createConversation(app);
    const [{ id }] = await app.call("GET /api/workers");
    const seen = await ctl(app, "events --kind worker.created", {
      terminal: true,
      env: { NO_COLOR: "1" },
    });
    expect(seen.out).toMatch(/^SEQ +AT +KIND +ABOUT +ACTOR +DATA\n/);
    expect(seen.out).toMatch(new RegExp(`worker\\.created +…${id.slice(-6)} +user:\\S+ +name Ada\\n$`));
    const all = await ctl(app, "events", { terminal: true, env: { NO_COLOR: "1" } });
    const [task] = await app.call(`GET /api/tasks?message_id=${message}`);
    expect(all.out).toMatch(new RegExp(`task\\.completed +…${task.id.slice(-6)} `));
    expect(all.out).toMatch(new RegExp(`execution\\.completed +…${task.execution_id.slice(-6)} `));
    expect(all.out).toMatch(new RegExp(`message\\.sent +…${message.slice(-6)} `));
    const piped = await ctl(app, `events --kind worker.created --worker-id ${id}`);
    expect(piped.out.trimEnd().split("\t").slice(3)).toEqual([
      expect.stringMatching(/^user:/),
      "",
      id,
      "",
      "",
      "",
      '{"name":"Ada"}',
    ]);
  });

  it("events -f follows until Ctrl-C, and returns exit 6 when the server stops", async () => {
    await using app = await openApp();
    const stop = new AbortController();
    const following = ctl(app, "events -f --kind worker.created --after 0 --json", {
      signal: stop.signal,
      onOut: () => stop.abort(),
    });
    await app.call("POST /api/workers", { name: "Ada" });
    const { code, out } = await following;
    expect(code).toBe(130);
    expect(JSON.parse(out)).toMatchObject({ kind: "worker.created", data: { name: "Ada" } });
    const ended = await ctl(app, "events -f --after 0", { onOut: () => void app.stop() });
    expect([ended.code, ended.err]).toEqual([
      6,
      expect.stringMatching(/^svc: Cannot follow events: the service is shutting down\n$/),
    ]);
  });

  it("events -f continues with a new token after a login token expires, without a gap (contract 9)", async () => {
    await using app = await openApp({ config: { auth: { access_ttl: "1s" } } });
    const env = { SVC_DATA_DIR: "/nowhere" };
    const login = await ctl(app, ["login", app.url, "--password-stdin"], { stdin: `${PASSWORD}\n`, env });
    expect(login.code).toBe(0);
    const stop = new AbortController();
    let seen = "";
    const following = ctl(app, "events -f --kind worker.created --json", {
      env: { ...env, XDG_CONFIG_HOME: `${app.dataDir}/config` },
      signal: stop.signal,
      onOut: (text) => seen += text,
    });
    const names: string[] = [];
    const until = Date.now() + 3_500;
    // The first entry is written after the stream opens. The last one needs a later token.
    while (Date.now() < until || !seen.includes(names.at(-1) ?? "")) {
      const name = `Worker ${names.length}.`;
      await app.call("POST /api/workers", { name });
      names.push(name);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    stop.abort();
    expect((await following).code).toBe(130);
    const printed = seen.trim().split("\n").map((line) => JSON.parse(line).data.name);
    expect(printed).toEqual(names.slice(names.length - printed.length));
    expect(printed.length).toBeGreaterThan(names.length / 2);
  });

  it("events -f returns exit 4 when its token expires", async () => {
    await using app = await openApp({ config: { auth: { access_ttl: "3s" } } });
    const { access_token } = await app.call("POST /api/auth/login", {
      username: "admin",
      password: PASSWORD,
    });
    const ended = await ctl(app, "events -f", { env: { SVC_URL: app.url, SVC_TOKEN: access_token } });
    expect([ended.code, ended.err]).toEqual([
      4,
      "svc: Cannot follow events: the token has expired. Log in again.\n",
    ]);
  });
});
