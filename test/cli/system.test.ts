import { describe, expect, it } from "vitest";
import { openApp } from "../harness/service/app.ts";
import { ctl } from "../harness/terminal.ts";

const STORED = { config: { auth: { password_hash: "" } } };

describe("svc ctl system (interface 4.2, contract 6)", () => {
  it("overview: a table on a terminal, names and values in a pipe, the server's JSON, or recent IDs", async () => {
    await using app = await openApp();
    await app.call("POST /api/workers", { name: "Ada" });
    const { id } = await app.call("POST /api/local/sessions");
    await app.call(`POST /api/local/sessions/${id}/messages`, { content: "@Ada hello" });
    await app.settle();
    const [execution] = await app.call("GET /api/executions");
    const shown = await ctl(app, "system overview", { terminal: true, env: { NO_COLOR: "1" } });
    expect(shown).toMatchObject({ code: 0, err: "" });
    expect(shown.out).toMatch(/^svc \d+\.\d+\.\d+ {2}ready, started (now|\d+s ago)\n/);
    expect(shown.out).toMatch(/^workers +1 {3}idle 1 {3}working 0 {3}waiting 0 {3}paused 0$/m);
    expect(shown.out).toMatch(/^tasks +1 .*completed 1/m);
    expect(shown.out).toMatch(/^today +1 {3}failed 0\n {2}Ada +1$/m);
    expect(shown.out).toMatch(
      /^ID +WORKER_NAME +STATUS +CREATED_AT +INSTRUCTION\n…[0-9a-f]{6} +Ada +completed/m,
    );
    const tsv = await ctl(app, "system overview");
    expect(tsv.out).toContain("workers.total\t1\nworkers.idle\t1\n");
    expect(tsv.out).toContain("usage_today.input_tokens\t\n");
    expect((await ctl(app, "system overview -q")).out).toBe(`${execution.id}\n`);
    const json = await ctl(app, "system overview --json");
    expect(JSON.parse(json.out)).toEqual(await app.call("GET /api/system/overview"));
  });

  it("executions: the coordinator's runs, up to --limit", async () => {
    await using app = await openApp();
    const { id } = await app.call("POST /api/local/sessions");
    for (const content of ["one", "two"]) {
      await app.call(`POST /api/local/sessions/${id}/messages`, { content });
      await app.settle();
    }
    const [newest] = await app.call("GET /api/system/executions");
    const tsv = await ctl(app, "system executions --limit 1");
    expect(tsv.out.split("\t").slice(0, 5)).toEqual([
      newest.id,
      newest.message_id,
      newest.session_key,
      "rules",
      "completed",
    ]);
    expect(tsv.out.trim().split("\n")).toHaveLength(1);
    expect((await ctl(app, "system executions -q")).out.trim().split("\n")).toHaveLength(2);
    expect(JSON.parse((await ctl(app, "system executions --json")).out)).toHaveLength(2);
    for (const limit of ["0", "101", "x", ""]) {
      expect((await ctl(app, ["system", "executions", "--limit", limit])).code, limit).toBe(2);
    }
  });

  it("backup: to a file, and never to one called - by mistake for stdout", async () => {
    await using app = await openApp();
    for (const file of ["-", "", "backups/"]) {
      expect(await ctl(app, ["system", "backup", file]), file).toMatchObject({ code: 2, out: "" });
    }
  });

  it("doctor: exit code 0 without a failed check, 1 with a failed check, and a hint for each", async () => {
    await using well = await openApp();
    const good = await ctl(well, "system doctor");
    expect(good.code).toBe(0);
    expect(good.out).toMatch(/^engines\tok\tusable: echo; the service finds programs in PATH=.*\t$/m);
    expect((await ctl(well, "system doctor -q")).out).toContain("backup\n");
    await using ill = await openApp({
      config: { engines: { default: "gone", gone: { kind: "command", command: "no-such-program" } } },
    });
    const bad = await ctl(ill, "system doctor", { terminal: true, env: { NO_COLOR: "1" } });
    expect(bad).toMatchObject({ code: 1, err: expect.stringMatching(/^svc: failed checks: .*engines/) });
    expect(bad.out).toMatch(/^engines +fail +gone: no-such-program/m);
    // No line is cut at any length or width.
    const narrow = await ctl(ill, "system doctor", {
      terminal: true,
      env: { NO_COLOR: "1" },
      width: 40,
    });
    for (const { detail, hint } of JSON.parse((await ctl(ill, "system doctor --json")).out).checks) {
      // Other processes write files between the two checks.
      const free = (text: string) => text.replace(/\d+ MB free/, "# MB free");
      expect(free(narrow.out)).toContain(` ${free(detail)}\n`);
      if (hint !== "") expect(narrow.out).toContain(`\n${" ".repeat(19)}${hint}\n`);
    }
    const json = await ctl(ill, "system doctor --json");
    expect(json).toMatchObject({ code: 1, err: "" });
    expect(JSON.parse(json.out).status).toBe("fail");
  });

  it("password: two hidden prompts on a terminal", async () => {
    await using app = await openApp(STORED);
    const typed = (stdin: string) =>
      ctl(app, "system password", { terminal: true, stdin, env: { NO_COLOR: "1" } });
    const differ = await typed("a longer secret\na longer secre\n");
    expect(differ).toMatchObject({ code: 2, out: "" });
    expect(differ.err).toContain("the passwords differ");
    // The user corrects a typing mistake.
    const changed = await typed("a longer secrex\u007ft\r\na longer secret\r".replace("\r\n", "\r"));
    expect(changed.code).toBe(0);
    expect(changed.err).toBe("New password: [hidden][shown]\nAgain: [hidden][shown]\n");
    expect(changed.out).toMatch(/^username +admin\n/);
    const login = { username: "admin", password: "a longer secret" };
    expect((await app.send("POST /api/auth/login", login)).status).toBe(200);
    expect((await typed("")).code).toBe(2);
  });

  it("password --stdin works in scripts; without --stdin and a terminal, password is a usage error", async () => {
    await using app = await openApp(STORED);
    const lost = await ctl(app, "system password", { stdin: "a longer secret\n" });
    expect(lost).toMatchObject({ code: 2, out: "", err: expect.stringContaining("--stdin") });
    expect((await ctl(app, "system password --stdin", { stdin: "short" })).code).toBe(2);
    const done = await ctl(app, "system password --stdin -q", { stdin: "a longer secret\n" });
    expect(done).toEqual({ code: 0, out: "admin\n", err: "" });
  });

  it("password: with a token from a login the current one is required", async () => {
    await using app = await openApp(STORED);
    const current = app.server.generatedPassword ?? "";
    const login = async (password: string) =>
      (await app.call("POST /api/auth/login", { username: "admin", password })).access_token;
    const env = { SVC_URL: app.url, SVC_TOKEN: await login(current), NO_COLOR: "1" };
    expect((await ctl(null, "system password --stdin", { env, stdin: "a longer secret" })).code).toBe(2);
    const scripted = await ctl(null, "system password --stdin", {
      env,
      stdin: `a longer secret\n${current}\n`,
    });
    expect(scripted.code).toBe(0);
    const again = { ...env, SVC_TOKEN: await login("a longer secret") };
    const asked = await ctl(null, "system password", {
      terminal: true,
      env: again,
      stdin: "even longer than that\neven longer than that\na longer secret\n",
    });
    expect(asked).toMatchObject({ code: 0, err: expect.stringContaining("Current password: [hidden]") });
    await login("even longer than that");
  });

  it("password: exit code 5 while the configuration sets the password", async () => {
    await using app = await openApp();
    const refused = await ctl(app, "system password --stdin", { stdin: "a longer secret" });
    expect(refused).toMatchObject({ code: 5, err: expect.stringContaining("auth.password_hash") });
  });
});
