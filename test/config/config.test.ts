import { join } from "node:path";
import { formatConfig } from "../../src/config/show.ts";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { configSchema, loadConfig } from "../../src/config/schema.ts";
import { readClientConfig } from "../../src/config/file.ts";
import { createTempDir, startServer, svc } from "../harness/service/process.ts";
import { readText } from "../harness/house/tree.ts";

async function load(yaml: string, env: Record<string, string> = {}) {
  await using folder = await createTempDir();
  const path = join(folder.path, "config.yaml");
  await Deno.writeTextFile(path, yaml);
  const loaded = await loadConfig(path, env);
  return { ...loaded, folder: folder.path };
}

async function findFault(yaml: string, env: Record<string, string> = {}): Promise<string> {
  return await load(yaml, env).then(
    () => "nothing",
    (error: Error) => error.message.replace(/^.*config\.yaml:/, ""),
  );
}

describe("configuration (contract 7)", () => {
  it("an empty configuration gives a working server", async () => {
    const { config } = await load("");
    expect(config).toMatchObject({
      server: { host: "127.0.0.1", port: 8080 },
      auth: {
        username: "admin",
        access_ttl: 900_000,
        refresh_ttl: 2_592_000_000,
        login_failures_per_minute: 10,
      },
      bee: { engine: "rules", max_attempts: 3 },
      engines: { default: "echo" },
      scheduler: { catch_up_window: 3_600_000 },
      limits: {
        max_concurrent_runs: 4,
        max_attempts: 3,
        max_waiting_messages: 1_000,
        max_chain_depth: 5,
        stop_grace: 5_000,
      },
      shutdown_grace: 30_000,
    });
    expect(config.bee.quiet_window).toBeUndefined();
  });

  it("notices need a target or a program, and existing kinds (contract 11)", async () => {
    const { config } = await load(
      'notices: [{on: ["budget.*"], to: "local:a"}, {on: ["*"], program: [page]}]',
    );
    expect(config.notices).toEqual([
      { on: ["budget.*"], to: "local:a", every: 600_000 },
      { on: ["*"], program: ["page"], every: 600_000 },
    ]);
    for (
      const [rule, words] of [
        ['{on: ["*"]}', /must have either `to` or `program`/],
        ['{on: ["*"], to: "local:a", program: [page]}', /must have either `to` or `program`/],
        ['{on: ["nothing.*"], to: "local:a"}', /must be a kind of notice/],
        ['{on: [], to: "local:a"}', /notices\.0\.on/],
        ['{on: ["*"], to: "cli:nightly"}', /must be a session key/],
        ['{on: ["*"], to: "somebody"}', /must be a session key/],
        ['{on: ["*"], program: ["./page"]}', /must start with a program on PATH/],
        ['{on: ["*"], program: []}', /notices\.0\.program/],
      ] as const
    ) expect(await findFault(`notices: [${rule}]`), rule).toMatch(words);
  });

  it("relative paths count from the file's directory", async () => {
    const { config, folder } = await load(
      "data_dir: here\ndatabase: {url: 'file:x.db'}\nengines: {a: {kind: command, command: ./run.sh}}",
    );
    expect(config.data_dir).toBe(join(folder, "here"));
    expect(config.database.url).toBe(`file:${join(folder, "x.db")}`);
    expect(config.engines.a).toMatchObject({ command: join(folder, "run.sh") });
  });

  it("the environment overrides the file, and secrets may be in files", async () => {
    await using folder = await createTempDir();
    const secret = join(folder.path, "secret");
    await Deno.writeTextFile(secret, "s".repeat(40) + "\n");
    const { config, password } = await load("server: {port: 1}\nauth: {username: file}", {
      SVC_SERVER__PORT: "2",
      SVC_AUTH__USERNAME: "123",
      SVC_AUTH__JWT_SECRET_FILE: secret,
      SVC_SERVER__ALLOWED_HOSTS: "a.example, b.example",
      SVC_SERVER__CONSOLE: "false",
      SVC_ENGINES__SHELL__PRICES__INPUT: "0.5",
      SVC_ENGINES__SHELL__PRICES__OUTPUT: "3",
      SVC_ENGINES__SHELL__KIND: "command",
      SVC_ENGINES__SHELL__COMMAND: "sh",
      SVC_ENGINES__SHELL__ENV__MY_KEY: "v",
      SVC_SHUTDOWN_GRACE: "2s",
      SVC_AUTH_PASSWORD_FILE: secret,
      SVC_FAULT: "ignored",
    });
    expect(config.server).toMatchObject({
      port: 2,
      allowed_hosts: ["a.example", "b.example"],
      console: false,
    });
    expect(config.auth).toMatchObject({ username: "123", jwt_secret: "s".repeat(40) });
    expect(config.engines.shell).toMatchObject({ kind: "command", command: "sh", env: { MY_KEY: "v" } });
    expect(config.engines.shell?.prices).toEqual({ input: 0.5, output: 3 });
    expect(config.shutdown_grace).toBe(2_000);
    expect(password).toBe("s".repeat(40));
  });

  it.each([
    ["server:\n  prot: 1", /^2:3: server.prot: unknown key. Known keys: host, port/],
    ["server:\n  port: '80'", /^2:9: server.port: must be a whole number/],
    ["server: {port: 70000}", /^1:16: server.port: must be at most 65535/],
    ["bee:\n  timeout: 5", /^2:12: bee.timeout: must be a duration such as/],
    ["bee: {timeout: 5 minutes}", /duration/],
    ["limits: {max_attempts: 0}", /must be at least 1/],
    ["scheduler: {time_zone: Mars/Base}", /must be a time zone/],
    ["log: {level: loud}", /log.level: must be one of debug, info, warning, error$/],
    ["auth: {jwt_secret: short}", /at least 32 characters/],
    ["auth: {password_hash: plain}", /scrypt hash/],
    ["auth: {password_hash: '$scrypt$ln=0,r=8,p=1$c2FsdA$aGFzaA'}", /scrypt hash/],
    ["auth: {password_hash: '$scrypt$ln=21,r=8,p=1$c2FsdA$aGFzaA'}", /at most 1 GiB/],
    // A truncated hash, or one with shell-expanded dollar signs, would match no password.
    ["auth: {password_hash: '$scrypt$ln=16,r=8,p=2$c2FsdA'}", /scrypt hash/],
    ["database: {url: postgres://x}", /must start with/],
    ["engines: {default: nope}", /^1:20: engines.default: no engine is called "nope". Known engines: /],
    ["bee: {engine: nope}", /bee.engine: no engine is called/],
    ["engines: {x: {command: y}}", /engines.x.kind: is required/],
    ["engines: {x: {kind: command}}", /engines.x.command: is required/],
    ["engines: {X: {kind: echo}}", /lower-case/],
    [
      "engines:\n  codex: {args: [--json]}",
      /^2:\d+: engines.codex.args: cannot contain --json: the service sets it/,
    ],
    [
      "engines:\n  gemini: {permissions: ask}",
      /^2:\d+: engines.gemini.permissions: gemini cannot ask a person about a tool call. Use read, edit or full, or an engine of kind acp, claude, codex/,
    ],
    ["engines: {codex: {permissions: ask, args: [--search]}}", /engines.codex.args: with permissions: ask/],
    [
      "engines: {claude: {permissions: ask, ask_timeout: 8d}}",
      /engines.claude.ask_timeout: must be at most 7d/,
    ],
    ["engines: {x: {kind: wat}}", /engines.x.kind/],
    ["backup: {cron: 3 o'clock}", /^1:16: backup.cron: a cron expression has five fields/],
    [
      "backup: {cron: 0 3 * * *}\ndatabase: {url: http://127.0.0.1:9}",
      /^1:16: backup.cron: the database is on a libSQL server/,
    ],
    ["server: {port: 1, port: 2}", /^1:\d+: not valid YAML: Map keys must be unique/],
    ["a: [", /not valid YAML/],
    ["- list", /must be a map of keys/],
    ["nope: 1", /^1:1: nope: unknown key. Known keys: server, data_dir/],
  ])(
    "%j is refused with its position and the way out",
    async (yaml, words) => expect(await findFault(yaml)).toMatch(words),
  );

  it.each([
    [{ SVC_SERVER__PROT: "1" }, /^SVC_SERVER__PROT: server.prot: unknown key/],
    [{ SVC_SERVER__CONSOLE: "no" }, /^SVC_SERVER__CONSOLE: server.console: must be true or false/],
    [{ SVC_SERVER__PORT: "x" }, /^SVC_SERVER__PORT: server.port: must be a whole number/],
    [{ SVC_AUTH__JWT_SECRET_FILE: "/no/such" }, /SVC_AUTH__JWT_SECRET_FILE: cannot read/],
  ])(
    "%j is refused by its name",
    async (env, words) => expect(await findFault("", env as Record<string, string>)).toMatch(words),
  );

  it("all problems are reported together", async () => {
    expect((await findFault("server: {prot: 1, port: x}\nlog: {level: 1}")).split("\n")).toHaveLength(3);
  });

  it.each([
    ["", "300ms for local, 3s for other platforms"],
    ["bee: {quiet_window: 500ms}", "500ms"],
  ])("the output of %j contains the effective quiet window", async (yaml, words) => {
    expect(formatConfig((await load(yaml)).config).bee).toMatchObject({ quiet_window: words });
  });

  it("config.yaml.example has every key with its default", async () => {
    const { parse } = await import("yaml");
    const example = parse(readText("config.yaml.example"));
    const { config, folder } = await load(readText("config.yaml.example"));
    const { config: standard } = await load("");
    expect(config.bee.quiet_window).toBe(300);
    config.bee.quiet_window = standard.bee.quiet_window;
    const shown = JSON.parse(JSON.stringify(config).replaceAll(folder, ""));
    const plain = JSON.parse(JSON.stringify(standard).replaceAll(/\/tmp\/svc-test-[0-9a-f]+/g, ""));
    expect(shown).toEqual({ ...plain, engines: shown.engines });
    const keys = (shape: z.core.JSONSchema.BaseSchema, path: string[] = []): string[] =>
      Object.entries(shape.properties ?? {}).flatMap(([name, inner]) => {
        const deeper = keys(inner as z.core.JSONSchema.BaseSchema, [...path, name]);
        return deeper.length > 0 ? deeper : [[...path, name].join(".")];
      });
    const has = (path: string) => path.split(".").reduce((value, key) => value?.[key], example) !== undefined;
    // A key without a default is in a comment.
    const comments = readText("config.yaml.example").split("\n").map((line) =>
      line.split("# ").slice(1).join("")
    );
    const isExplained = (path: string) => comments.some((one) => one.includes(`${path.split(".").at(-1)}:`));
    const schema = z.toJSONSchema(configSchema, { io: "input" });
    expect(keys(schema).filter((key) => !has(key) && !isExplained(key))).toEqual([]);
  });

  it("readClientConfig agrees with loadConfig on the values for ctl", async () => {
    await using folder = await createTempDir();
    const path = join(folder.path, "config.yaml");
    const secret = join(folder.path, "secret");
    await Deno.writeTextFile(secret, "z".repeat(40));
    await Deno.writeTextFile(
      path,
      `server: {host: 0.0.0.0, port: 9}\ndata_dir: d\nauth: {username: me, jwt_secret: ${"x".repeat(40)}}`,
    );
    for (
      const env of [
        {},
        { SVC_SERVER__PORT: "7", SVC_DATA_DIR: "/elsewhere" },
        { SVC_AUTH__JWT_SECRET: "y".repeat(40), SVC_AUTH__JWT_SECRET_FILE: secret },
      ] as Record<string, string>[]
    ) {
      const { config } = await loadConfig(path, env);
      expect(await readClientConfig(path, env)).toEqual({
        host: config.server.host,
        port: config.server.port,
        dataDir: config.data_dir,
        jwtSecret: config.auth.jwt_secret,
        username: config.auth.username,
      });
    }
  });

  it("svc serve exits 2 and names the position, for a missing, unreadable or wrong file", async () => {
    await using folder = await createTempDir();
    await Deno.writeTextFile(join(folder.path, "bad.yaml"), "server:\n  prot: 1\n");
    const missing = await svc(["serve", "-c", "nope.yaml"], { dataDir: folder.path });
    expect([missing.code, missing.out]).toEqual([2, ""]);
    expect(missing.err).toMatch(/^Cannot read the configuration .*nope.yaml: no such file/);
    const bad = await svc(["serve", "-c", "bad.yaml"], { dataDir: folder.path });
    expect(bad.code).toBe(2);
    expect(bad.err).toMatch(/bad.yaml:2:3: server.prot: unknown key/);
  });

  it("serve warns only when other users can read a secret in the file [SEC-7]", async () => {
    await using folder = await createTempDir();
    const path = join(folder.path, "config.yaml");
    const said = async (text: string, mode: number): Promise<string> => {
      await Deno.writeTextFile(path, text);
      await Deno.chmod(path, mode);
      await using server = await startServer({ dataDir: folder.path, args: ["-c", path] });
      return server.stderr;
    };
    const secret = `auth:\n  jwt_secret: ${"x".repeat(40)}\n`;
    expect(await said(secret, 0o644)).toContain("Other users can read jwt_secret in");
    expect(await said(secret, 0o600)).not.toContain("Other users can read");
    expect(await said("bee:\n  persona: kind\n", 0o644)).not.toContain("Other users can read");
  });
});
