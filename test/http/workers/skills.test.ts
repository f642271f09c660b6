import { describe, expect, it } from "vitest";
import { concatBytes } from "../../../src/base/bytes.ts";
import { git } from "../../harness/service/git_server.ts";
import { openApp } from "../../harness/service/app.ts";
import { formatSkill, openSkillApp, SHELL_ENGINES } from "../../harness/service/skill_app.ts";

const SHA = /^[0-9a-f]{64}$/;

describe("skills of a worker (contract 28)", () => {
  it("are fetched at the write and kept once, and every run gets them as files and in its context", async () => {
    await using world = await openSkillApp();
    const { app, weigh, price } = world;
    const { status, body: ada } = await world.create([weigh, price]);
    expect(status, JSON.stringify(ada)).toBe(201);
    expect(ada.skills).toEqual([
      {
        ...weigh,
        name: "weigh-parcels",
        description: "How to weigh weigh-parcels",
        digest: expect.stringMatching(SHA),
      },
      {
        ...price,
        name: "price-parcels",
        description: "How to weigh price-parcels",
        digest: expect.stringMatching(SHA),
      },
    ]);
    const digests = ada.skills.map(({ digest }: { digest: string }) => digest).sort();
    expect(await world.listKept()).toEqual(digests);
    const asked = world.forge.requests.length;
    expect((await world.create([weigh])).status).toBe(201);
    expect(await app.call(`PUT /api/workers/${ada.id}`, await app.call(`GET /api/workers/${ada.id}`)))
      .toMatchObject({ skills: ada.skills });
    expect(world.forge.requests.length).toBe(asked);
    const run = await world.run(
      ada,
      `cat "$SVC_CONTEXT_FILE"; d=$(dirname "$SVC_CONTEXT_FILE")/skills; cat $d/weigh-parcels/SKILL.md; sh $d/weigh-parcels/scripts/run.sh; ls -lR $d`,
    );
    expect(run, JSON.stringify(run)).toMatchObject({ status: "completed" });
    expect(run.result).toContain("Weigh it twice.");
    expect(run.result).toContain("weighed\n");
    expect(run.result).toMatch(/"path": "\/.*\/input\/skills\/price-parcels\/SKILL.md"/);
  });
});

/** Writes a tree object whose entries git itself would not write, commits it, and returns the commit. */
async function commitTree(dir: string, entries: [mode: string, name: string, object: string][]) {
  const parts = entries.map(([mode, name, object]) => {
    const head = new TextEncoder().encode(`${mode} ${name}\0`);
    return concatBytes([head, Uint8Array.from(object.match(/../g) ?? [], (pair) => parseInt(pair, 16))]);
  });
  const file = await Deno.makeTempFile();
  await Deno.writeFile(file, concatBytes(parts));
  const tree = await git(dir, "hash-object", "-t", "tree", "-w", "--literally", file);
  await Deno.remove(file);
  const commit = await git(dir, "commit-tree", "-m", "odd", tree);
  await git(dir, "update-ref", `refs/heads/odd-${commit.slice(0, 8)}`, commit);
  return commit;
}

const LFS = "version https://git-lfs.github.com/spec/v1\noid sha256:abc\nsize 5\n";
const many = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, at) => [`f/${at}`, "x"]));

describe("a skill that cannot be used", () => {
  it.each<[string, Record<string, string>, RegExp]>([
    ["no SKILL.md", { "a.md": "x" }, /no SKILL.md at its top/],
    ["a SKILL.md without front matter", { "SKILL.md": "hello" }, /must start with a front matter/],
    ["no name", { "SKILL.md": "---\ndescription: x\n---\n" }, /no name/],
    ["a bad name", { "SKILL.md": formatSkill("Weigh_It") }, /lower-case letters, digits and single hyphens/],
    ["a long name", { "SKILL.md": formatSkill("a".repeat(65)) }, /at most 64/],
    ["no description", { "SKILL.md": "---\nname: a\n---\n" }, /no description/],
    [
      "a long description",
      { "SKILL.md": `---\nname: a\ndescription: ${"x".repeat(1025)}\n---\n` },
      /1024 char/,
    ],
    ["front matter that is no YAML", { "SKILL.md": "---\nname: [\n---\n" }, /not valid YAML/],
    ["front matter that is a list", { "SKILL.md": "---\n- a\n---\n" }, /without name and description/],
    ["a pointer of LFS", { "SKILL.md": formatSkill("a"), "b.bin": LFS }, /b.bin, a pointer of Git LFS/],
    ["too many files", { "SKILL.md": formatSkill("a"), ...many(2_000) }, /more than 2000 files/],
    ["a name with a line break", { "SKILL.md": formatSkill("a"), "a\nb": "x" }, /unsafe name/],
  ])("is refused with %s, and nothing of it is kept", async (_what, files, words) => {
    await using world = await openSkillApp({ files });
    const { status, body } = await world.create([{ url: world.forge.url, ref: world.ref }]);
    expect(status, JSON.stringify(body)).toBe(400);
    expect(body.errors[0]).toEqual({ path: "skills.0.path", message: expect.stringMatching(words) });
    expect(await world.listKept()).toEqual([]);
  });

  it("is refused with a link, a submodule, a mode with set-id bits, a folder .git and too many bytes", async () => {
    await using world = await openSkillApp();
    const { forge, ref } = world;
    const blob = await git(forge.dir, "rev-parse", `${ref}:weigh/SKILL.md`);
    const folder = await git(forge.dir, "rev-parse", `${ref}:weigh`);
    const top: [string, string, string] = ["100644", "SKILL.md", blob];
    const file = await Deno.makeTempFile();
    await Deno.truncate(file, 26 * 1024 * 1024);
    const big = await git(forge.dir, "hash-object", "-w", file);
    await Deno.remove(file);
    for (
      const [entries, words] of [
        [[top, ["120000", "link", blob]], /link, a symbolic link/],
        [[top, ["160000", "module", ref]], /module, a submodule/],
        [[top, ["104755", "tool", blob]], /git itself refuses.*badFilemode/],
        [[["40000", ".git", folder], top], /git itself refuses.*\.git/i],
        [[["40000", "..", folder], top], /git itself refuses.*\.\./i],
        [[top, ["100644", "x.bin", big], ["100644", "y.bin", big]], /more than 50 MiB/],
      ] as [[string, string, string][], RegExp][]
    ) {
      const odd = await commitTree(forge.dir, entries);
      const { status, body } = await world.create([{ url: forge.url, ref: odd }]);
      expect(status, JSON.stringify(body)).toBe(400);
      expect(body.errors[0].path).toMatch(/^skills\.0\./);
      expect(body.errors[0].message).toMatch(words);
    }
    expect(await world.listKept()).toEqual([]);
  });

  it("is refused by its address, commit and folder, with the way out", async () => {
    await using world = await openSkillApp();
    const { weigh, price, app } = world;
    const gone = "0".repeat(39) + "1";
    for (
      const [skills, path, words] of [
        [[{ ...weigh, ref: "main" }], "skills.0.ref", /full SHA.*svc ctl skill add/],
        [[{ ...weigh, ref: gone }], "skills.0.ref", /no such commit/],
        [[{ ...weigh, path: "none" }], "skills.0.path", /no folder none/],
        [[{ ...weigh, path: "weigh/SKILL.md" }], "skills.0.path", /no folder/],
        [[{ ...weigh, path: "../x" }], "skills.0.path", /path of a folder/],
        [[{ ...weigh, path: "/etc" }], "skills.0.path", /path of a folder/],
        [[{ ...weigh, url: "http://forge.example.org/x" }], "skills.0.url", /https or ssh/],
        [[{ ...weigh, url: "https://a:b@forge.example.org/x" }], "skills.0.url", /no password$/],
        [[{ ...weigh, url: "file://host/x" }], "skills.0.url", /file:\/\/\/srv/],
        [[{ ...weigh, url: "ext::sh -c id" }], "skills.0.url", /must/],
        [[{ ...weigh, url: `file://${app.dataDir}/skills` }], "skills.0.url", /data directory/],
        [[{ ...weigh, url: "file:///nonexistent/x" }], "skills.0.url", /no such repository/],
        [[{ ...weigh, url: "http://127.0.0.1:9/x.git" }], "skills.0.url", /cannot be reached/],
        [[weigh, price, weigh], "skills.2", /same as skills.0/],
        [Array.from({ length: 21 }, () => weigh), "skills", /at most 20 skills/],
      ] as [object[], string, RegExp][]
    ) {
      const { status, body } = await world.create(skills);
      expect(status, JSON.stringify([skills, body])).toBe(400);
      expect(body.errors[0].path).toBe(path);
      expect(body.errors[0].message).toMatch(words);
    }
    const other = await world.forge.commit("main", { "more/SKILL.md": formatSkill("weigh-parcels") });
    const { body } = await world.create([weigh, { ...weigh, ref: other, path: "more" }]);
    expect(body.errors[0]).toEqual({
      path: "skills.1",
      message: expect.stringMatching(/called weigh-parcels/),
    });
  });

  it("is refused for an engine without skills, a worker on runners and a caller without write:commands", async () => {
    await using world = await openSkillApp();
    const { weigh, app } = world;
    const echo = await world.create([weigh], { engine: "echo" });
    expect(echo.body.errors[0]).toMatchObject({
      path: "skills",
      message: expect.stringContaining("echo has no skills"),
    });
    const away = await world.create([weigh], { runs_on: ["mac"] });
    expect(away.body.errors[0]).toMatchObject({
      path: "skills",
      message: expect.stringContaining("runs_on"),
    });
    const ada = (await world.create([weigh])).body;
    for (const change of [{ engine: "echo" }, { runs_on: ["mac"] }]) {
      const { status, body } = await app.send(`PUT /api/workers/${ada.id}`, change);
      expect([status, body.errors[0].path]).toEqual([400, "skills"]);
    }
    const { token } = await app.call("POST /api/tokens", {
      name: "few",
      scopes: ["write:workers", "read:workers"],
    });
    const few = { authorization: `Bearer ${token}` };
    for (const skills of [[], [weigh, world.price]]) {
      expect((await app.send(`PUT /api/workers/${ada.id}`, { skills }, few)).status).toBe(403);
    }
    expect((await app.send(`PUT /api/workers/${ada.id}`, { skills: ada.skills }, few)).status).toBe(200);
    expect((await app.send(`POST /api/workers/${ada.id}/skills/check`, { url: weigh.url }, few)).status).toBe(
      403,
    );
  });
});

describe("skills in a fleet file", () => {
  it("are fetched when it is applied, shown as changes by a plan, and exported to another service", async () => {
    await using world = await openSkillApp();
    const { app, forge, weigh, price } = world;
    const plan = (skills: object[]) =>
      app.call("POST /api/fleet/plan", { fleet: { workers: [{ name: "Ada", skills }] } });
    const apply = (skills: object[]) =>
      app.send("POST /api/fleet/apply", { fleet: { workers: [{ name: "Ada", skills }] } });
    expect((await apply([weigh])).status).toBe(200);
    const [ada] = await app.call("GET /api/workers");
    expect(ada.skills).toMatchObject([{ ...weigh, name: "weigh-parcels" }]);
    expect((await plan([weigh])).changes).toEqual([]);
    const next = await forge.commit("main", { "weigh/SKILL.md": formatSkill("weigh-parcels", "Once.") });
    const newer = { ...weigh, ref: next };
    expect((await plan([newer, price])).changes).toMatchObject([
      { action: "update", name: "Ada", fields: [{ name: "skills", before: [weigh], after: [newer, price] }] },
    ]);
    expect((await apply([newer, price])).status).toBe(200);
    expect((await app.call("GET /api/workers"))[0].skills).toMatchObject([{ ref: next }, {
      name: "price-parcels",
    }]);
    const refused = await apply([{ ...weigh, path: "none" }]);
    expect([refused.status, refused.body.errors[0].path]).toEqual([400, "fleet.workers.Ada.skills.0.path"]);
    const exported = await app.call("GET /api/fleet");
    expect(exported.workers).toEqual([{ name: "Ada", skills: [newer, price] }]);
    await using other = await openApp({ config: { engines: SHELL_ENGINES } });
    await other.call("POST /api/fleet/apply", { fleet: exported });
    expect((await other.call("GET /api/workers"))[0].skills).toMatchObject([{ ref: next }, {
      name: "price-parcels",
    }]);
  });
});

it("a skill without git on the machine is refused in words", async () => {
  await using world = await openSkillApp();
  const path = Deno.env.get("PATH") ?? "";
  try {
    Deno.env.set("PATH", "/nonexistent");
    const { status, body } = await world.create([world.weigh]);
    expect([status, body.errors[0]]).toEqual([400, {
      path: "skills.0.url",
      message: expect.stringContaining("git is not installed on the service's machine"),
    }]);
  } finally {
    Deno.env.set("PATH", path);
  }
  const ada = (await world.create([world.weigh])).body;
  const { checks } = await world.app.call("GET /api/system/doctor");
  const git = checks.find(({ name }: { name: string }) => name === "git");
  expect([ada.skills.length, git.detail]).toEqual([1, expect.stringContaining("with skills: 1")]);
});
