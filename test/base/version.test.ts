import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { Database } from "../../src/store/db/database.ts";
import { COMMIT, formatVersion, LIBSQL_VERSION, SQLITE_VERSION, VERSION } from "../../src/base/version.ts";
import { createTempDir, startServer, svc } from "../harness/service/process.ts";
import { ROOT } from "../harness/house/tree.ts";
import { waitUntil } from "../harness/wait.ts";
import { PASS_HASH } from "../harness/service/client.ts";

describe("version", () => {
  it("matches deno.json, and so does the version of libSQL", async () => {
    const { version, imports } = JSON.parse(await Deno.readTextFile(join(ROOT, "deno.json")));
    expect(VERSION).toBe(version);
    expect(imports.libsql).toBe(`npm:libsql@${LIBSQL_VERSION}`);
  });

  it("includes the version of the running SQLite [DUR-7]", async () => {
    await using db = await Database.open(":memory:");
    expect(await db.first("select sqlite_version() as version")).toEqual({ version: SQLITE_VERSION });
  });

  it("formatVersion() is one line, or with --json one object", () => {
    expect(COMMIT).toBe("");
    expect(formatVersion(false)).toBe(`svc ${VERSION} (from source)`);
    expect(JSON.parse(formatVersion(true))).toEqual({
      version: VERSION,
      commit: "",
      commit_time: "",
      target: Deno.build.target,
      deno: Deno.version.deno,
      v8: Deno.version.v8,
      sqlite: SQLITE_VERSION,
      libsql: LIBSQL_VERSION,
    });
  });

  it("is logged at the start, with the versions of SQLite and of the time zone data [DUR-7, CRN-10]", async () => {
    await using data = await createTempDir();
    await using server = await startServer({
      dataDir: data.path,
      env: { SVC_AUTH__PASSWORD_HASH: PASS_HASH },
    });
    const line = () => server.stderr.split("\n").find((said) => said.includes(" is ready at ")) ?? "";
    await waitUntil("the service has logged its versions", () => Promise.resolve(line() !== ""));
    expect(JSON.parse(line())).toMatchObject({
      version: VERSION,
      sqlite: SQLITE_VERSION,
      zone_data: expect.stringMatching(/^20\d\d[a-z]$/),
    });
  });

  it("svc help lists every command, and an unknown command exits 2 (contract 6)", async () => {
    await using data = await createTempDir();
    const { code, out, err } = await svc(["help"], { dataDir: data.path });
    expect([code, err]).toEqual([0, ""]);
    for (const command of ["serve", "ctl", "restore", "service", "health", "version", "completion", "help"]) {
      expect(out).toMatch(new RegExp(`^  svc ${command}\\b`, "m"));
    }
    expect(await svc(["frobnicate"], { dataDir: data.path })).toMatchObject({ code: 2, out: "" });
  });

  it("--help prints help for every command on stdout, exits 0, and starts nothing (contract 6)", async () => {
    await using data = await createTempDir();
    for (
      const args of [
        ["serve", "--help"],
        ["serve", "-h"],
        ["health", "--help"],
        ["restore", "--help"],
        ["completion", "--help"],
        ["version", "--help"],
        ["service", "--help"],
        ["help", "serve"],
        ["help", "service"],
        ["help", "ctl", "task", "wait"],
      ]
    ) {
      const { code, out, err } = await svc(args, { dataDir: data.path });
      expect([args, code, err]).toEqual([args, 0, ""]);
      expect(out, args.join(" ")).toMatch(/^Usage:/m);
    }
    expect([...Deno.readDirSync(data.path)]).toEqual([]);
  });

  it("an unknown flag or word exits 2 with its name on stderr, and starts nothing (contract 6)", async () => {
    await using data = await createTempDir();
    const cases: [string[], RegExp][] = [
      [
        ["serve", "--confg", "x.yaml"],
        /^svc: unknown argument "--confg"\. Usage: svc serve \[-c config.yaml\]/,
      ],
      [["serve", "x.yaml"], /^svc: unknown argument "x.yaml"/],
      [["serve", "-c"], /^svc: --config must not be empty/],
      [["serve", "--config="], /^svc: --config must not be empty/],
      [["serve", "--config=nope.yaml"], /^Cannot read the configuration .*nope.yaml: no such file/],
      [["health", "--nope"], /^svc: unknown argument "--nope"/],
      [["health", "--config=nope.yaml"], /^svc: Cannot read the configuration .*nope.yaml/],
      [["worker", "list"], /^svc: unknown command "worker"\. Did you mean `svc ctl worker`\?\n$/],
      [["constructor"], /^svc: unknown command "constructor"\. See `svc help`\.\n$/],
      [["version", "--nope"], /^svc: unknown argument "--nope" for version/],
      [["service"], /^Usage: svc service/],
    ];
    for (const [args, wanted] of cases) {
      const { code, out, err } = await svc(args, { dataDir: data.path });
      expect([args, code, out, err]).toEqual([args, 2, "", expect.stringMatching(wanted)]);
    }
    expect([...Deno.readDirSync(data.path)]).toEqual([]);
  });
});
