import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { listGuides } from "../../src/config/guides.ts";
import { listSettings } from "../../src/config/settings.ts";
import { checkSnippet } from "../../src/config/snippet.ts";
import { loadConfig } from "../../src/config/schema.ts";
import { ADAPTERS } from "../../src/engine/kinds.ts";
import { MANIFESTS } from "../../src/platform/registry.ts";

const FILE = `server:
  port: 9000
engines:
  default: writer
  writer:
    kind: command
    command: /bin/cat
    env:
      KEY: a secret of an engine
platforms:
  phone:
    kind: telegram
    token_file: token
    allow: [1, 2]
database:
  url: libsql://me:a-secret-password@db.example.org?authToken=another-secret
  auth_token: a-secret-token
`;

async function openFolder(text: string) {
  const folder = await Deno.makeTempDir();
  const path = join(folder, "config.yaml");
  await Deno.writeTextFile(path, text);
  await Deno.writeTextFile(join(folder, "token"), "123456:ABCDEFGHIJKLMNOPQRSTUVWXYZ012345678");
  return { path, [Symbol.asyncDispose]: () => Deno.remove(folder, { recursive: true }) };
}

describe("listSettings()", () => {
  it("names the line, the variable or the default of each value, and shows no secret", async () => {
    await using folder = await openFolder(FILE);
    const env = { SVC_SERVER__HOST: "0.0.0.0", SVC_LOG__LEVEL: "debug", SVC_SERVER__PORT: "9001" };
    const settings = listSettings(await loadConfig(folder.path, env));
    const find = (key: string) => settings.find((one) => one.key === key);
    expect(find("server.port")).toMatchObject({
      value: "9001",
      source: "environment",
      at: "SVC_SERVER__PORT",
    });
    expect(find("server.host")).toMatchObject({ value: "0.0.0.0", source: "environment" });
    expect(find("server.console")).toEqual({
      key: "server.console",
      value: "true",
      source: "default",
      at: "",
    });
    expect(find("engines.writer.command")).toMatchObject({ source: "file", at: `${folder.path}:7` });
    expect(find("engines.writer.timeout")).toMatchObject({ value: "30m", source: "default" });
    expect(find("platforms.phone.token")).toMatchObject({ source: "file", at: `${folder.path}:13` });
    expect(find("platforms.phone.allow")).toMatchObject({ value: "[1,2]", source: "file" });
    const text = JSON.stringify(settings);
    for (const secret of ["a secret of an engine", "a-secret", "another-secret", "ABCDEFGH"]) {
      expect(text).not.toContain(secret);
    }
  });
});

describe("listGuides()", () => {
  it("has a guide for every kind, whose lines are valid", async () => {
    await using folder = await openFolder("log:\n  level: info\n");
    const loaded = await loadConfig(folder.path, {});
    const guides = listGuides();
    for (const { kind, yaml } of guides) {
      expect(checkSnippet(yaml, loaded), kind).toEqual({ valid: true, problems: [], present: [] });
    }
    const kinds = [...ADAPTERS, ...MANIFESTS].map(({ kind }) => kind).filter((kind) => kind !== "echo");
    expect(guides.map(({ kind }) => kind)).toEqual(kinds);
  });
});

it("a file of a secret that cannot be read is named with its platform", async () => {
  await using folder = await openFolder(FILE.replace("token_file: token", "token_file: /no/such/file"));
  await expect(loadConfig(folder.path, {})).rejects.toThrow(
    "platforms.phone.token_file: cannot read /no/such/file",
  );
});

describe("checkSnippet()", () => {
  it("accepts valid lines, also those that name an engine of the service or the file of a secret", async () => {
    await using folder = await openFolder(FILE);
    const loaded = await loadConfig(folder.path, {});
    const before = JSON.stringify(loaded.config);
    for (
      const lines of [
        "log:\n  level: debug",
        "bee:\n  engine: writer",
        "engines:\n  default: claude",
        "platforms:\n  team:\n    kind: slack\n    app_token_file: /no/such/file\n    bot_token_file: /none",
      ]
    ) {
      const present = ["engines", "platforms"].filter((key) => lines.startsWith(key));
      expect(checkSnippet(lines, loaded), lines).toEqual({ valid: true, problems: [], present });
    }
    expect(JSON.stringify(loaded.config)).toBe(before);
  });

  it("reports each problem with its line, and repeats no value", async () => {
    await using folder = await openFolder(FILE);
    const loaded = await loadConfig(folder.path, {});
    const cases: [lines: string, line: number, words: RegExp][] = [
      ["log:\n  level: [", 2, /not valid YAML/],
      ["", 1, /must contain keys/],
      ["- a", 1, /must contain keys/],
      ["\nlogs: 1", 2, /logs: unknown key/],
      ["server:\n  port: sixty", 2, /server.port: must be a whole number/],
      ["engines:\n  default: nix", 2, /no engine is called "nix"/],
      ["engines:\n  mine: {}", 2, /engines.mine.kind: is required/],
      [
        "platforms:\n  shop:\n    kind: webhook\n    worker: Ada\n    secret: short",
        5,
        /platforms.shop.secret: must be whsec_/,
      ],
      ["backup:\n  cron: whenever", 2, /backup.cron/],
    ];
    for (const [lines, line, words] of cases) {
      const { valid, problems: [problem] } = checkSnippet(lines, loaded);
      expect([valid, problem], lines).toEqual([
        false,
        expect.objectContaining({ message: expect.stringMatching(words) }),
      ]);
      expect(Math.abs((problem?.line ?? 0) - line), `${lines}: ${problem?.line}`).toBeLessThanOrEqual(1);
    }
    const bomb =
      "a: &a [1,1,1,1,1,1,1,1,1,1]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]";
    expect(checkSnippet(bomb, loaded).valid).toBe(false);
    const secret = "platforms:\n  phone:\n    kind: telegram\n    token: [swordfish-7]";
    expect(JSON.stringify(checkSnippet(secret, loaded))).not.toContain("swordfish");
  });
});
