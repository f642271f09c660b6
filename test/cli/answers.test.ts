import { describe, expect, it } from "vitest";
import { CREATE_ENDPOINTS } from "../../cli/client/retry.ts";
import { ROUTES } from "../../src/http/app.ts";
import type { AnyRoute } from "../../src/http/route.ts";
import { buildFakeEngines } from "../harness/fakes/agents.ts";
import { openApp } from "../harness/service/app.ts";
import { ctl } from "../harness/terminal.ts";

const open = () => openApp({ config: { engines: buildFakeEngines() } });

describe("svc ctl chat prints its own answer and no other (contract 8.8)", () => {
  it("prints each caller's own reply with three concurrent messages in one session", async () => {
    await using app = await open();
    await app.call("POST /api/workers", { name: "Ada" });
    await app.call("POST /api/local/sessions", { name: "work" });
    const said = await Promise.all(
      ["one", "two", "three"].map((text) => ctl(app, ["chat", "--session", "work", `say ${text}`])),
    );
    expect(said.map(({ code, out }) => [code, out])).toEqual([[0, "one\n"], [0, "two\n"], [0, "three\n"]]);
  });

  it("does not print an earlier reply after a timeout", async () => {
    await using app = await open();
    await app.call("POST /api/workers", { name: "Ada" });
    await app.call("POST /api/local/sessions", { name: "work" });
    const late = await ctl(app, "chat --session work --timeout 300ms 'sleep 2'");
    expect([late.code, late.out]).toEqual([124, ""]);
    expect(late.err).toMatch(
      /^accepted ([0-9a-f-]{36})\nsvc: .*The work continues: svc ctl message trace \1\n$/,
    );
    expect(await ctl(app, "chat --session work 'say mine'")).toMatchObject({
      code: 0,
      out: "mine\n",
    });
  });

  it("--last continues the caller's latest session; exit 3 without one", async () => {
    await using app = await open();
    await app.call("POST /api/workers", { name: "Ada" });
    expect((await ctl(app, "chat --last 'say hi'")).code).toBe(3);
    const first = await ctl(app, ["chat", "say first of all,   with\nmany words that go on and on and on"]);
    const id = /session (\S+)/.exec(first.err)?.[1];
    await app.call("POST /api/local/sessions", { name: "newer, but nothing was said in it" });
    await ctl(app, "chat --last 'say second'");
    const said = await app.call(`GET /api/local/sessions/${id}/messages`);
    expect(said.map((one: { content: string }) => one.content).at(-1)).toBe("second");
    expect((await app.call(`GET /api/local/sessions/${id}`)).name).toBe(
      "say first of all, with many words that…",
    );
    expect((await ctl(app, "chat --last --session x say")).code).toBe(2);
  });

  it("returns exit 8 if no worker matches", async () => {
    await using app = await open();
    for (const name of ["Ada", "Bob"]) await app.call("POST /api/workers", { name });
    const { code, out, err } = await ctl(app, "chat whatever");
    expect([code, out]).toEqual([8, expect.stringContaining("- @Ada")]);
    expect(err).toMatch(/svc: no worker matched the message\n$/);
  });
});

describe("svc ctl run and runs of a schedule (contract 8.9, contract 8.10)", () => {
  it("prints only the answer; the exit code reports the outcome", async () => {
    await using app = await open();
    await app.call("POST /api/workers", { name: "Ada" });
    const said = await ctl(app, "run ada 'say hello'");
    expect(said).toEqual({
      code: 0,
      out: "hello\n",
      err: expect.stringMatching(/^accepted [0-9a-f-]{36}\n$/),
    });
    expect(await ctl(app, "run Ada -", { stdin: "say from a pipe\n" })).toMatchObject({
      out: "from a pipe\n",
    });
    const failed = await ctl(app, "run Ada 'exit 3'");
    expect([failed.code, failed.out]).toEqual([8, ""]);
    expect(failed.err).toMatch(/svc: task \S+ failed: exit_code/);
    const json = await ctl(app, "run Ada 'say x' --json");
    expect(JSON.parse(json.out)).toMatchObject({ result: "x", status: "completed", worker_name: "Ada" });
    const created = await ctl(app, "run Ada --no-wait -q 'say later'");
    expect(created).toMatchObject({ code: 0, out: expect.stringMatching(/^[0-9a-f-]{36}\n$/), err: "" });
    expect((await ctl(app, "run Ada --timeout 200ms 'sleep 20'")).code).toBe(124);
  });

  it("accepts a time, a schedule or a conversation, and refuses contradicting flags", async () => {
    await using app = await open();
    const { id } = await app.call("POST /api/workers", { name: "Ada" });
    expect((await ctl(app, "run Ada --in 10m --no-wait x")).out).toContain("type\tcountdown\n");
    expect((await ctl(app, "run Ada --at +1h --no-wait x")).out).toContain("type\tcountdown\n");
    const cron = await ctl(app, "run Ada --cron '0 9 * * 1' --time-zone UTC x");
    expect(cron).toMatchObject({ code: 0, out: expect.stringContaining("time_zone\tUTC\n") });
    expect(await ctl(app, "run Ada --cron '61 * * * *' x")).toMatchObject({
      code: 8,
      out: expect.stringContaining("status\tcancelled\n"),
      err: "svc: the task was cancelled: minute: 61 is not 0-59\n",
    });
    await ctl(app, "run Ada --session book 'say a'");
    const [ran] = await app.call(`GET /api/executions?worker_id=${id}&page_size=1`);
    expect(ran.session_key).toBe("cli:book");
    for (const wrong of [["--in", "1m", "--at", "+1h"], ["--time-zone", "UTC"], ["--in", "soon"]]) {
      expect((await ctl(app, ["run", "Ada", ...wrong, "x"])).code, wrong.join(" ")).toBe(2);
    }
    expect((await ctl(app, "run Nobody x")).code).toBe(3);
    expect((await ctl(app, "run Ada ' '")).code).toBe(2);
  });
});

describe("names and ID endings as references (contract 8.11)", () => {
  it("resolves workers by name and all things by six or more last characters; exit 2 lists several matches", async () => {
    await using app = await open();
    const { id } = await app.call("POST /api/workers", { name: "Ada" });
    for (const ref of ["Ada", "ada", id.slice(-6), id.slice(-12).toUpperCase(), id]) {
      expect((await ctl(app, ["worker", "get", ref, "-q"])).out, ref).toBe(`${id}\n`);
    }
    expect((await ctl(app, ["worker", "get", id.slice(-5)])).code).toBe(3);
    expect((await ctl(app, ["worker", "get", id.slice(0, 8)])).code).toBe(3);
    const task = (await ctl(app, "run Ada --no-wait -q ok")).out.trim();
    await app.settle();
    expect((await ctl(app, ["task", "get", task.slice(-7), "-q"])).out).toBe(`${task}\n`);
    const [{ id: execution }] = await app.call("GET /api/executions");
    expect((await ctl(app, ["execution", "get", execution.slice(-8), "-q"])).out).toBe(`${execution}\n`);
    expect((await ctl(app, "execution list --worker-id ada -q")).out).toBe(`${execution}\n`);
    const { id: other } = await app.call("POST /api/workers", { name: "ADA" });
    const both = await ctl(app, "worker get Ada");
    expect([both.code, both.out]).toEqual([2, ""]);
    expect(both.err).toContain(id);
    expect(both.err).toContain(other);
  });
});

describe("create requests (contract 8.6)", () => {
  it("equal the requests that the server executes once per idempotency key", () => {
    const routes = (ROUTES as readonly AnyRoute[]).filter(({ idempotent }) => idempotent);
    expect([...CREATE_ENDPOINTS].sort()).toEqual(
      // The command line sends no requests of OpenAI's clients.
      routes.filter(({ path }) => path.startsWith("/api/")).map(({ method, path }) => `${method} ${path}`)
        .sort(),
    );
  });

  it("are repeated once with the same key after a lost response, then return exit 1", async () => {
    await using app = await open();
    let asked = 0;
    let lose = 1;
    const keys = new Set<string | null>();
    // Executes each request and loses the response.
    const proxy = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen: () => {} }, async (request) => {
      const url = new URL(request.url);
      if (url.pathname === "/readyz") return new Response("");
      asked++;
      keys.add(request.headers.get("idempotency-key"));
      const answer = await app.server.fetch(
        new Request(new URL(url.pathname + url.search, "http://localhost"), {
          method: request.method,
          headers: request.headers,
          ...(request.method === "POST" ? { body: await request.text() } : {}),
        }),
      );
      if (lose-- <= 0) return answer;
      return new Response(new ReadableStream({ start: (controller) => controller.error(new Error("lost")) }));
    });
    await using _end = { [Symbol.asyncDispose]: () => proxy.shutdown() };
    const env = { SVC_URL: `http://127.0.0.1:${proxy.addr.port}`, SVC_TOKEN: await app.token() };
    const made = await ctl(app, "department create -n Labs -q", { env });
    expect([made.code, made.err, asked, keys.size]).toEqual([0, "", 2, 1]);
    expect((await app.call("GET /api/departments")).map((one: { id: string }) => one.id)).toEqual([
      made.out.trim(),
    ]);
    lose = 2;
    const unknown = await ctl(app, "department create -n Ateliers", { env });
    expect([unknown.code, unknown.out]).toEqual([1, ""]);
    expect(unknown.err).toMatch(/the request may have succeeded/);
    expect(await app.call("GET /api/departments")).toHaveLength(2);
    expect((await ctl(app, "worker list", { env: { ...env, SVC_URL: "http://127.0.0.1:1" } })).code)
      .toBe(6);
  });
});

describe("svc ctl asks before likely mistakes (contract 8.11, contract 8.15, contract 8.17)", () => {
  it("worker create asks on a terminal about a second worker of a name, and warns in a pipe", async () => {
    await using app = await open();
    const { id } = await app.call("POST /api/workers", { name: "Ada" });
    const create = ["worker", "create", "-n", "ADA", "-q"];
    const no = await ctl(app, create, { terminal: true, stdin: "n\n" });
    expect([no.code, no.out]).toEqual([7, ""]);
    expect(no.err).toContain(`Another worker is called Ada (${id})`);
    expect(await app.call("GET /api/workers")).toHaveLength(1);
    const piped = await ctl(app, create);
    expect(piped).toMatchObject({
      code: 0,
      err: expect.stringMatching(/^svc: warning: another worker is called Ada /),
    });
    expect((await ctl(app, create, { terminal: true, stdin: "y\n" })).code).toBe(0);
    expect((await ctl(app, [...create, "--yes"], { terminal: true })).code).toBe(0);
    expect(await app.call("GET /api/workers")).toHaveLength(4);
  });

  it("worker delete asks on a terminal before it deletes a work directory", async () => {
    await using app = await open();
    const { id, work_dir } = await app.call("POST /api/workers", { name: "Ada" });
    const no = await ctl(app, "worker delete Ada --delete-work-dir", {
      terminal: true,
      stdin: "\n",
    });
    expect([no.code, no.err]).toEqual([7, expect.stringContaining(work_dir)]);
    expect((await app.call(`GET /api/workers/${id}`)).id).toBe(id);
    expect((await ctl(app, "worker delete Ada --delete-work-dir")).code).toBe(0);
    await expect(Deno.stat(work_dir)).rejects.toThrow(Deno.errors.NotFound);
  });

  it("session clear asks if several workers have active tasks and no context", async () => {
    await using app = await open();
    for (const name of ["Ada", "Bob"]) {
      const { id: worker_id } = await app.call("POST /api/workers", { name });
      const task = { message_id: "k", worker_id, instruction: "ok", type: "scheduled", cron: "0 0 1 1 *" };
      await app.call("POST /api/tasks", task);
    }
    const clear = ["session", "clear", "--session-key", "cli:k"];
    const no = await ctl(app, clear, { stdin: "n\n" });
    expect([no.code, no.err]).toEqual([
      7,
      expect.stringMatching(/2 workers are linked \((Ada, Bob|Bob, Ada)\)/),
    ]);
    expect((await ctl(app, [...clear, "--force"])).out).toContain("cancelled_tasks\t2\n");
  });
});
