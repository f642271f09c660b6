import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { SEARCH_PAGE_ROWS } from "../../src/domain/system/search.ts";
import { buildFakeEngines } from "../harness/fakes/agents.ts";
import { openApp } from "../harness/service/app.ts";
import { createTempDir, svc } from "../harness/service/process.ts";
import { startRun } from "../harness/service/run.ts";
import { ctl } from "../harness/terminal.ts";

const UNKNOWN = "01a1fd23-4a4c-746f-99ac-8860e2641168";

// The lines that a chat with a separate session prints on stderr (contract 8.6, contract 8.8).
const TOLD = expect.stringMatching(/^session [0-9a-f-]{36}\naccepted [0-9a-f-]{36}\n$/);

describe("svc ctl worker (interface 4.2, contract 6)", () => {
  it("creates, shows, lists, changes and deletes a worker, in all output forms", async () => {
    await using app = await openApp();
    const made = await ctl(app, "worker create -n Ada --description 'two\nlines\tand a tab' --work-dir here");
    expect(made).toMatchObject({ code: 0, err: "" });
    expect(made.out).toMatch(/^id\t[0-9a-f-]{36}\nname\tAda\ndescription\ttwo\\nlines\\tand a tab\n/);
    const id = /^id\t(.*)$/m.exec(made.out)?.[1] ?? "";
    expect(made.out).toContain(`work_dir\t/tmp/here\n`);

    const tsv = await ctl(app, "worker list");
    expect(tsv.out.split("\t").slice(0, 3)).toEqual([id, "Ada", "idle"]);
    expect((await ctl(app, "worker list -q")).out).toBe(`${id}\n`);
    const json = await ctl(app, "worker list --json");
    expect(JSON.parse(json.out)).toEqual(await app.call("GET /api/workers"));
    const shown = await ctl(app, "worker list", { terminal: true, env: { NO_COLOR: "1" } });
    expect(shown.out).toMatch(/^ID +NAME +STATUS +CREATED_AT\n…[0-9a-f]{6} +Ada +idle .*(now|s ago)\n$/);

    expect((await ctl(app, `worker get ${id} --json`)).out).toBe(
      `${JSON.stringify(await app.call(`GET /api/workers/${id}`))}\n`,
    );
    expect((await ctl(app, `worker status ${id}`)).out).toContain("usable\ttrue\n");
    const updated = await ctl(
      app,
      `worker update ${id} --description '' --engine-args 'echo=-x "a b"' --scopes read:workers,read:tasks`,
    );
    expect(updated.out).toContain("description\t\n");
    expect(updated.out).toContain("scopes\tread:workers,read:tasks\n");
    expect(await app.call(`GET /api/workers/${id}`)).toMatchObject({
      name: "Ada",
      engine_args: { echo: '-x "a b"' },
    });
    await ctl(app, `worker update ${id} --engine-args echo= --scopes '' --engine ''`);
    expect(await app.call(`GET /api/workers/${id}`)).toMatchObject({
      engine_args: {},
      scopes: [],
      engine: "",
    });
    expect(await ctl(app, `worker delete ${id} --delete-work-dir`)).toEqual({
      code: 0,
      out: "status\tdeleted\n",
      err: "",
    });
  });

  it("worker create stores an unknown scope and warns on stderr (contract 2)", async () => {
    await using app = await openApp();
    const made = await ctl(app, "worker create -n Ada --scopes read:workers,read:cakes,fly:moon");
    const words = "svc: warning: no route needs read:cakes, fly:moon, so it has no effect\n";
    expect([made.code, made.err]).toEqual([0, words]);
    const id = /^id\t(.*)$/m.exec(made.out)?.[1] ?? "";
    expect((await app.call(`GET /api/workers/${id}`)).scopes).toEqual([
      "read:workers",
      "read:cakes",
      "fly:moon",
    ]);
    expect((await ctl(app, `worker update ${id} --scopes read:cake`)).err).toMatch(/warning: .*read:cake,/);
    expect((await ctl(app, `worker update ${id} --scopes read:workers`)).err).toBe("");
  });

  it("worker create and doctor warn about an unusable engine, and the worker is unavailable (contract 3, Worker)", async () => {
    await using app = await openApp({
      config: { engines: { ...buildFakeEngines(), gone: { kind: "command", command: "/no/such/program" } } },
    });
    const made = await ctl(app, "worker create -n Ada --engine gone -q");
    expect(made).toMatchObject({
      code: 0,
      err: "svc: warning: engine gone cannot be used: /no/such/program does not exist\n",
    });
    expect((await ctl(app, "worker list")).out.split("\t").slice(1, 3)).toEqual(["Ada", "unavailable"]);
    const shown = await ctl(app, "worker list", { terminal: true });
    expect(shown.out).toContain("\u001b[31munavailable");
    expect((await ctl(app, "worker get Ada")).out).toContain("\nstatus\tunavailable\n");
    expect((await ctl(app, "worker status Ada")).out).toContain("\nstatus\tunavailable\n");
    const { checks } = await app.call("GET /api/system/doctor");
    expect(checks.find(({ name }: { name: string }) => name === "workers")).toMatchObject({
      status: "warn",
      detail: expect.stringContaining("gone (Ada)"),
    });
  });

  it("a table fits the terminal: the last column gets the remaining width, and empty columns are left out", async () => {
    await using app = await openApp();
    await app.call("POST /api/workers", { name: "Ada" });
    const said = `tab\there, ${"🙂".repeat(20)} ${"long ".repeat(60)}`.trim();
    await ctl(app, ["chat", said, "-q"]);
    const table = async (width: number) => {
      const { out } = await ctl(app, "execution list", {
        terminal: true,
        env: { NO_COLOR: "1" },
        width,
      });
      return out.trimEnd().split("\n").map((line) => [...line]);
    };
    for (const width of [120, 160, 500]) {
      const [head = [], row = []] = await table(width);
      expect(head.join("")).toMatch(
        /^ID +WORKER_NAME +STATUS +ENGINE +STARTED_AT +COMPLETED_AT +INSTRUCTION$/,
      );
      expect(row.join("")).not.toMatch(/[\t\ufffd]/);
      // An emoji takes two cells, so a row has fewer characters than the terminal has cells.
      expect(row.length, String(width)).toBeLessThanOrEqual(width);
      expect(row.join("").endsWith(width === 500 ? "long" : "…")).toBe(true);
    }
    const [, narrow = []] = await table(70);
    expect(narrow.join("")).toMatch(/ tab here,?( 🙂*)?…$/u);
    const none = await ctl(app, "worker list --name nobody", {
      terminal: true,
      env: { NO_COLOR: "1" },
    });
    expect(none).toEqual({ code: 0, out: "", err: "none\n" });
    expect(await ctl(app, "worker list --name nobody")).toEqual({ code: 0, out: "", err: "" });
  });

  it("filters and pages like the server, and says when there are more pages", async () => {
    await using app = await openApp();
    for (const name of ["a1", "a2", "b1"]) await app.call("POST /api/workers", { name });
    const names = async (...args: string[]) =>
      (await ctl(app, ["worker", "list", ...args])).out.trim().split("\n").map((line) => line.split("\t")[1]);
    expect(await names("--name", "A")).toEqual(["a2", "a1"]);
    const page = await ctl(app, "worker list --page-size 2");
    expect(page.err).toBe("2 of 3, use --page 2\n");
    expect(await names("--page-size", "2", "--page", "2")).toEqual(["a1"]);
    expect((await ctl(app, "worker list --page-size 201")).code).toBe(2);
  });

  it("search says with which cursor it continues, and so prints every result once", async () => {
    await using app = await openApp({ inMemory: true });
    const count = SEARCH_PAGE_ROWS + 2;
    for (let at = 0; at < count; at++) {
      await app.call("PUT /api/memory/entry", { scope: "global", key: `entry ${at}`, value: "invoice" });
    }
    const page = await ctl(app, "search invoice -q");
    const cursor = /^more results: use --cursor (\S+)\n$/.exec(page.err)?.[1] ?? page.err;
    const rest = await ctl(app, ["search", "invoice", "-q", "--cursor", cursor]);
    expect(rest).toMatchObject({ code: 0, err: "" });
    expect(new Set((page.out + rest.out).trim().split("\n")).size).toBe(count);
    expect((await ctl(app, "search invoice --json")).err).toBe(page.err);
  });

  it("the server gets values that look like flags, are empty, or have any characters, unchanged", async () => {
    await using app = await openApp();
    const odd = "--not-a-flag 'quotes' \"more\" $HOME \n 👩‍🚀 ";
    const flags = ["--name=-n", "--description", odd, "--memory=--json", "--constraints="];
    const made = await ctl(app, ["worker", "create", ...flags]);
    expect(made.code).toBe(0);
    const id = /^id\t(.*)$/m.exec(made.out)?.[1];
    expect(await app.call(`GET /api/workers/${id}`)).toMatchObject({
      name: "-n",
      description: odd,
      memory: "--json",
      constraints: "",
    });
    const large = "x".repeat(262_144);
    expect((await ctl(app, ["worker", "create", "-n", "b", "--memory", large])).code).toBe(0);
    expect((await ctl(app, ["worker", "create", "-n", "b", "--memory", large + "x"])).code).toBe(2);
  });
});

describe("svc ctl execution and chat", () => {
  it("prints the reply, lists the execution, and shows its log", async () => {
    await using app = await openApp({ config: { engines: buildFakeEngines() } });
    await app.call("POST /api/workers", { name: "Ada" });
    expect(await ctl(app, "chat 'say hello there'")).toEqual({ code: 0, out: "hello there\n", err: TOLD });
    expect((await app.call("GET /api/local/sessions")).map((one: { name: string }) => one.name)).toEqual([
      "say hello there",
    ]);
    await ctl(app, "chat --session work --worker Ada 'say again'");
    expect((await app.call("GET /api/local/sessions")).map((one: { name: string }) => one.name)).toEqual([
      "work",
      "say hello there",
    ]);
    const id = (await ctl(app, "execution list -q --page-size 1")).out.trim();
    expect((await ctl(app, `execution get ${id}`)).out).toContain("result\tagain\n");
    expect((await ctl(app, `execution logs -f ${id}`)).out).toMatch(/ again\n.*\[completed\]\n$/);
    expect((await ctl(app, `execution logs --tail 1 ${id}`)).out).toMatch(/^\S+ \[completed\]\n$/);
    expect((await ctl(app, "execution list --status failed")).out).toBe("");
    expect((await ctl(app, "execution list --status nope")).err).toContain(
      '--status: "nope" is not one of pending, running, completed, failed',
    );
  });

  it("a log on a terminal keeps the agent's colors and no other control sequences", async () => {
    await using app = await openApp({ config: { engines: buildFakeEngines() } });
    await app.call("POST /api/workers", { name: "Ada" });
    const print = String
      .raw`\033[31mred\033[2J\033]0;title\007 \033[38;5;8mgrey \033[8mhidden\n\033[1mopen\nplain\n`;
    await ctl(app, ["run", "Ada", `svc version > v; printf '${print}'`]);
    const [{ id }] = await app.call("GET /api/executions");
    const terminal = (env: Record<string, string>) =>
      ctl(app, `execution logs ${id}`, { terminal: true, env });
    const seen = (await terminal({ TERM: "xterm" })).out;
    expect(seen).toContain("\u001b[31mred\ufffd[2J\ufffd]0;title\ufffd \u001b[38;5;8mgrey hidden\u001b[0m\n");
    expect(seen).toContain("Z \u001b[1mopen\u001b[0m\n");
    expect((await terminal({ TERM: "dumb" })).out).toContain(
      "red\ufffd[2J\ufffd]0;title\ufffd grey hidden\n",
    );
    expect((await ctl(app, `execution logs ${id}`)).out).toContain("\u001b[31mred\u001b[2J");
  });

  it("chat returns exit 8 if the work of the message failed (contract 6)", async () => {
    await using app = await openApp({ config: { engines: buildFakeEngines() } });
    await app.call("POST /api/workers", { name: "Ada" });
    const failed = await ctl(app, "chat 'exit 3'");
    expect(failed).toMatchObject({
      code: 8,
      err: expect.stringMatching(/\nsvc: task [0-9a-f-]{36} failed: exit_code/),
    });
    expect(failed.out).toMatch(/Ada failed: exit_code/);
    const json = await ctl(app, "chat 'exit 3' --json");
    expect([json.code, JSON.parse(json.out).source_type]).toEqual([8, "system"]);
    const told = json.err.trimEnd().split("\n").map((line) => JSON.parse(line));
    expect(told).toMatchObject([
      { session: expect.any(String) },
      { accepted: expect.any(String) },
      { code: "task_failed", title: "Task failed" },
    ]);
  });

  it("chat --worker talks to exactly that worker, or says why it cannot", async () => {
    await using app = await openApp({ config: { engines: buildFakeEngines() } });
    const { id } = await app.call("POST /api/workers", { name: "Ada" });
    await app.call("POST /api/workers", { name: "Ada Two" });
    for (const worker of ["Ada", "ada", "@Ada", id]) {
      expect(await ctl(app, ["chat", "--worker", worker, "say hi"]), worker).toEqual({
        code: 0,
        out: "hi\n",
        err: TOLD,
      });
    }
    const nobody = await ctl(app, "chat --worker Ad 'say hi'");
    expect(nobody).toEqual({ code: 3, out: "", err: 'svc: Cannot find worker "Ad": no such worker\n' });
    await app.call("POST /api/workers", { name: "ADA" });
    const both = await ctl(app, "chat --worker Ada 'say hi'");
    expect(both).toMatchObject({
      code: 2,
      out: "",
      err: expect.stringMatching(
        /^svc: "Ada" matches several workers. Use one of these IDs:\n {2}[0-9a-f-]{36} {2}ADA *\n {2}[0-9a-f-]{36} {2}Ada *\n$/,
      ),
    });
    expect(await ctl(app, `chat --worker ${id} 'say hi'`)).toMatchObject({
      code: 5,
      out: "",
      err: expect.stringMatching(/2 workers have this name/),
    });
  });

  it("an agent's text does not control the operator's terminal, neither as a reply nor as an error", async () => {
    await using app = await openApp({ config: { engines: buildFakeEngines() } });
    const { id } = await app.call("POST /api/workers", { name: "Ada" });
    const evil = "say hi\u001b]0;owned\u0007\u001b[2J";
    const seen = await ctl(app, ["chat", evil], { terminal: true, env: { NO_COLOR: "1" } });
    expect(seen).toMatchObject({ code: 0, out: "hi\n" });
    expect((await ctl(app, ["chat", evil])).out).toBe("hi\n");
    const failed = await ctl(app, [
      ...["task", "create", "--message-id", "m", "--worker-id", id, "--type", "immediate", "--wait"],
      ...["--instruction", "exit 3\u001b[2J"],
    ]);
    expect([failed.code, failed.err]).toEqual([8, expect.stringContaining("about to exit 3")]);
    expect(failed.err).not.toContain("\u001b");
  });

  it("chat returns exit 124 at the timeout", async () => {
    await using app = await openApp({ config: { engines: buildFakeEngines() } });
    await app.call("POST /api/workers", { name: "Ada" });
    const late = await ctl(app, "chat --timeout 1s 'sleep 30'");
    expect(late.code).toBe(124);
    expect(late.err).toMatch(/Timed out after 1 s/);
    const seconds = await ctl(app, "chat --timeout 0s --json 'sleep 30'");
    expect([seconds.code, JSON.parse(seconds.err.trimEnd().split("\n").at(-1) ?? "").code]).toEqual([
      124,
      "timed_out",
    ]);
    expect(await ctl(app, "chat --timeout 5 x")).toMatchObject({ code: 2, out: "" });
  });

  it("returns exit 0 after its reader closes the pipe, and 130 after Ctrl-C", async () => {
    await using app = await openApp({ config: { engines: buildFakeEngines() } });
    await app.call("POST /api/workers", { name: "Ada" });
    expect(await ctl(app, "worker list", { closedPipe: true })).toEqual({ code: 0, out: "", err: "" });
    const interrupt = new AbortController();
    const waiting = ctl(app, "chat 'sleep 30'", { signal: interrupt.signal });
    await app.until("execution.started");
    interrupt.abort();
    expect((await waiting).code).toBe(130);
  });
});

describe("errors and exit codes (contract 6)", () => {
  it("returns exit 3 for not found, 4 for not allowed, 5 for a conflict", async () => {
    await using app = await openApp();
    expect(await ctl(app, ["worker", "get", UNKNOWN])).toMatchObject({
      code: 3,
      out: "",
      err: expect.stringMatching(/^svc: Cannot find worker/),
    });
    for (const id of ["x", "a/b", "?x=1", "#", "%2f", "$&", "é", " "]) {
      expect((await ctl(app, ["worker", "get", id])).code, id).toBe(3);
    }
    expect((await ctl(app, "worker list", { env: { SVC_TOKEN: "forged" } })).code).toBe(4);
    const home = await app.call("POST /api/workers", { name: "home", work_dir: "/" });
    expect((await ctl(app, ["worker", "delete", home.id, "--delete-work-dir"])).code).toBe(5);
    await using folder = await createTempDir();
    const fresh = await ctl(null, "worker list", {
      env: { SVC_DATA_DIR: folder.path, SVC_URL: app.url },
    });
    expect(fresh.code).toBe(4);
    expect(fresh.err).toMatch(/no token\. Run `svc ctl login \S+`, set SVC_TOKEN/);
  });

  it("in a run it never falls back to the operator's rights (contract 2)", async () => {
    await using app = await openApp();
    const { code, err } = await ctl(app, "worker list", { env: { SVC_RUN_ID: "x" } });
    expect([code, err]).toEqual([4, "svc: Cannot log in: SVC_TOKEN is missing in this agent's run\n"]);
  });

  it("in a run it changes nothing about the operator's logins (contract 2)", async () => {
    await using folder = await createTempDir();
    const file = join(folder.path, "svc", "hosts.yaml");
    await Deno.mkdir(join(folder.path, "svc"));
    const login = "{username: ada, refresh_token: r, access_token: a, expires_at: 0}";
    const text = `current: ""\nhosts: {"http://127.0.0.1:9": ${login}}\n`;
    await Deno.writeTextFile(file, text);
    const env = {
      SVC_RUN_ID: "x",
      SVC_TOKEN: "t",
      SVC_URL: "http://127.0.0.1:9",
      XDG_CONFIG_HOME: folder.path,
    };
    for (const words of ["login", "logout", "context use"]) {
      const { code, err } = await ctl(null, `${words} http://127.0.0.1:9`, { env });
      expect([code, err]).toEqual([4, expect.stringMatching(/^svc: Cannot .*: this is an agent's run\n$/)]);
    }
    expect(await Deno.readTextFile(file)).toBe(text);
  });

  it("an error in a run names a next step that an agent can take, never to start a service", async () => {
    await using app = await openApp({ config: { engines: buildFakeEngines() } });
    const { token, executionId } = await startRun(app, ["read:workers"]);
    const run = { SVC_RUN_ID: executionId, SVC_TOKEN: token, SVC_URL: app.url };
    const refused = await ctl(app, "worker create -n x", { env: run });
    expect(refused).toEqual({
      code: 4,
      out: "",
      err: "svc: Cannot do this: the token lacks the scope write:workers. " +
        "Continue without it, or mention it in your answer.\n",
    });
    // The message already says that no scope would help.
    const { token: all } = await startRun(app, ["*:*"], "Other");
    const never = await ctl(app, "worker create -n x --scopes *:*", {
      env: { ...run, SVC_TOKEN: all },
    });
    expect(never).toMatchObject({ code: 4, err: expect.stringMatching(/not a run token\n$/) });
    const gone = await ctl(app, "worker list", { env: { ...run, SVC_URL: "http://127.0.0.1:1" } });
    expect(gone).toMatchObject({ code: 6, err: expect.stringMatching(/Try again in a moment\.\n$/) });
    expect(gone.err).not.toContain("svc serve");
  });

  it("returns exit 4 for a malformed token, and does not repeat it in the message [SEC-6]", async () => {
    await using app = await openApp();
    for (const token of ["secret\nvalue", "secret value", "secr\u00e9t", "secret\r"]) {
      const { code, out, err } = await ctl(app, "worker list", {
        env: { SVC_TOKEN: token, SVC_URL: app.url },
      });
      expect([code, out, err]).toEqual([
        4,
        "",
        expect.stringMatching(/^svc: Cannot log in with SVC_TOKEN: /),
      ]);
      expect(err).not.toMatch(/secr[e\u00e9]t/);
    }
  });

  it("with --json an error is one JSON object on stderr, the server's problem document", async () => {
    await using app = await openApp();
    const { code, out, err } = await ctl(app, ["worker", "get", UNKNOWN, "--json"]);
    expect([code, out]).toEqual([3, ""]);
    expect(JSON.parse(err)).toMatchObject({ code: "not_found", status: 404, request_id: expect.any(String) });
    const usage = await ctl(app, "worker list --page x --json");
    expect(JSON.parse(usage.err)).toMatchObject({
      code: "invalid_request",
      detail: '--page: "x" is not a whole number',
    });
    const away = { SVC_URL: "http://127.0.0.1:1" };
    const gone = await ctl(app, "worker list --json", { env: away });
    expect(JSON.parse(gone.err)).toMatchObject({ code: "unavailable", title: "Unavailable" });
  });

  it("help goes to stdout, with exit 0 and examples", async () => {
    const usages: [line: string, usage: string][] = [
      ["--help", "<group> <command> [arguments] [flags]"],
      ["help", "<group> <command> [arguments] [flags]"],
      ["worker --help", "worker <command> [arguments] [flags]"],
      ["help worker", "worker <command> [arguments] [flags]"],
      ["worker create --help", "worker create [flags]"],
      ["worker help create", "worker create [flags]"],
      ["help worker create", "worker create [flags]"],
      ["help events", "events [flags]"],
    ];
    for (const [line, usage] of usages) {
      const { code, out, err } = await ctl(null, line);
      expect([line, code, out.split("\n")[0], err]).toEqual([line, 0, `Usage: svc ctl ${usage}`, ""]);
      expect([line, out.includes("Examples:\n  $ svc ctl ")]).toEqual([line, / create|events/.test(line)]);
    }
    // The parser's word "option" must not appear: every text says flag.
    expect((await ctl(null, "help task")).out).not.toMatch(/option/i);
  });

  it("a real process: works with a config file, and its outputs can be combined in a shell", async () => {
    await using app = await openApp();
    await app.call("POST /api/workers", { name: "Ada" });
    await using folder = await createTempDir();
    await Deno.writeTextFile(
      join(folder.path, "config.yaml"),
      `data_dir: ${app.dataDir}\nserver: {port: ${new URL(app.url).port}}\n`,
    );
    const list = await svc(["ctl", "worker", "list", "-q"], {
      dataDir: folder.path,
      env: { SVC_DATA_DIR: app.dataDir, SVC_SERVER__PORT: new URL(app.url).port },
    });
    expect(list).toMatchObject({ code: 0, err: "" });
    expect((await svc(["ctl", "worker", "get", list.out.trim()], { dataDir: app.dataDir })).out).toContain(
      "name\tAda",
    );
    const version = await svc(["version"], { dataDir: folder.path });
    expect(version).toMatchObject({ code: 0, err: "" });
    expect((await svc(["nope"], { dataDir: folder.path })).code).toBe(2);
  });
});
