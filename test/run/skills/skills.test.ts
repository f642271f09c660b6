import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { findBoxFault } from "../../../src/engine/process/box_fault.ts";
import { BOX_SETTINGS } from "../../harness/box.ts";
import { waitUntil } from "../../harness/wait.ts";
import { formatSkill, openSkillApp } from "../../harness/service/skill_app.ts";

const READ = `cat "$(dirname "$SVC_CONTEXT_FILE")"/skills/weigh-parcels/SKILL.md`;
const fault = await findBoxFault(BOX_SETTINGS);

describe("the skills of a run (contract 28)", () => {
  it.each<[string, (path: string) => Promise<void>]>([
    ["another text", (path) => Deno.writeTextFile(path, "[]\nBad words")],
    ["other bytes of the same length", async (path) => {
      const text = await Deno.readTextFile(path);
      await Deno.writeTextFile(path, text.replace("Weigh it twice", "Weigh it never"));
    }],
    ["another path in its list", async (path) => {
      const text = await Deno.readTextFile(path);
      await Deno.writeTextFile(path, text.replace("scripts/run.sh", "../../../run.sh"));
    }],
    ["nothing", (path) => Deno.remove(path)],
    ["a link", async (path) => {
      await Deno.rename(path, `${path}.moved`);
      await Deno.symlink(`${path}.moved`, path);
    }],
    ["a directory", async (path) => {
      await Deno.remove(path);
      await Deno.mkdir(join(path, "x"), { recursive: true });
    }],
  ])("are fetched again when a run finds %s in the place of the kept file [SKL-2]", async (_what, poison) => {
    await using world = await openSkillApp();
    const { body: ada } = await world.create([world.weigh]);
    const path = join(world.app.dataDir, "skills", ada.skills[0].digest);
    await poison(path);
    const before = world.forge.requests.length;
    const run = await world.run(ada, READ);
    expect(run).toMatchObject({ status: "completed", result: expect.stringContaining("Weigh it twice.") });
    expect((await Deno.lstat(path)).isFile).toBe(true);
    const asked = world.forge.requests.length;
    expect(asked).toBeGreaterThan(before);
    await world.run(ada, READ);
    expect(world.forge.requests.length).toBe(asked);
  });

  it("fail with setup when the kept file is changed and the repository is gone, or gives something else [SKL-2]", async () => {
    await using world = await openSkillApp();
    const { app, forge } = world;
    const { body: ada } = await world.create([world.weigh]);
    const path = join(app.dataDir, "skills", ada.skills[0].digest);
    await Deno.writeTextFile(path, "poison");
    forge.refuse = { status: 404 };
    const gone = await world.run(ada, READ);
    expect(gone).toMatchObject({ status: "failed", failure: "setup" });
    expect(gone.error).toMatch(
      /its skill weigh-parcels .*kept files are missing or changed.*no such repository/,
    );
    forge.refuse = null;
    await app.db.write([{
      sql: "update worker set skills = replace(skills, ?, ?)",
      args: [ada.skills[0].digest, "0".repeat(64)],
    }]);
    const other = await world.run(ada, READ);
    expect(other).toMatchObject({ status: "failed", failure: "setup" });
    expect(other.error).toMatch(/other files than those that were checked/);
  });

  it("are copies: a run that changes its copy changes no other run, and no file stays", async () => {
    await using world = await openSkillApp();
    const { body: ada } = await world.create([world.weigh]);
    const dir = `"$(dirname "$SVC_CONTEXT_FILE")"/skills/weigh-parcels`;
    const bad = await world.run(ada, `chmod u+w ${dir}/*; echo Bad > ${dir}/SKILL.md; ${READ}; echo ${dir}`);
    expect(bad.result).toMatch(/^Bad/);
    const [, copy = ""] = bad.result.trim().split("\n");
    await waitUntil("the copy is gone", () => Deno.stat(copy).then(() => false, () => true));
    expect((await world.run(ada, READ)).result).toContain("Weigh it twice.");
  });

  it.skipIf(fault !== null)("cannot be changed in a box", async () => {
    await using world = await openSkillApp({ config: { isolation: BOX_SETTINGS } });
    const { body: ada } = await world.create([world.weigh], { isolation: { box: { network: "none" } } });
    const dir = `"$(dirname "$SVC_CONTEXT_FILE")"/skills/weigh-parcels`;
    const run = await world.run(
      ada,
      `${READ}; sh ${dir}/scripts/run.sh; chmod u+w ${dir}/SKILL.md; echo x > ${dir}/SKILL.md; rm -rf ${dir}; mkdir ${dir}-2; ${READ} | tail -1; ls ${world.app.dataDir}/skills`,
    );
    expect(run, JSON.stringify(run)).toMatchObject({ failure: "exit_code" });
    const log = String(await world.app.call(`GET /api/executions/${run.id}/logs`));
    expect(log).toContain("weighed");
    expect(log.match(/Weigh it twice/g), log).toHaveLength(2);
    expect(log).toMatch(/Read-only file system/);
    expect(log).not.toContain(ada.skills[0].digest);
  });

  it("leave when no worker has them any longer, as does what a kill has left", async () => {
    await using world = await openSkillApp();
    const { app } = world;
    const { body: ada } = await world.create([world.weigh, world.price]);
    const [weigh, price] = ada.skills;
    await app.call(`PUT /api/workers/${ada.id}`, { skills: [price] });
    await app.runStage("trees");
    expect(await world.listKept()).toEqual([weigh.digest, price.digest].sort());
    const old = new Date(Date.now() - 2 * 3_600_000);
    await Deno.mkdir(join(app.dataDir, "skills", ".new-1", "git"), { recursive: true });
    for (const name of [weigh.digest, price.digest, ".new-1"]) {
      await Deno.utime(join(app.dataDir, "skills", name), old, old);
    }
    await app.runStage("trees");
    expect(await world.listKept()).toEqual([price.digest]);
  });
});

describe("the changes of a skill", () => {
  it("show what a newer commit would change, and change nothing", async () => {
    await using world = await openSkillApp();
    const { app, forge, weigh } = world;
    const { body: ada } = await world.create([weigh]);
    const next = await forge.commit("main", {
      "weigh/SKILL.md": formatSkill("weigh-parcels", "Weigh it once."),
      "weigh/more.md": "more\n",
      // Attributes of the repository must not hide a change.
      "weigh/.gitattributes": "* -diff\n",
      "weigh/scripts/run.sh": null as unknown as string,
    });
    const check = (body: object) => app.call(`POST /api/workers/${ada.id}/skills/check`, body);
    const { url, path } = weigh;
    const found = await check({ url, path });
    expect(found).toMatchObject({
      skill: { ref: next },
      before: ada.skills[0],
      truncated: false,
      files_changed: 4,
    });
    expect(found.diff).toContain("-Weigh it twice.\n+Weigh it once.");
    expect(found.diff).toContain("+++ b/more.md");
    expect(found.diff).toContain("--- a/scripts/run.sh\n+++ /dev/null");
    for (const ref of ["main", "HEAD", next]) {
      expect(await check({ url, path, ref })).toMatchObject({ skill: { ref: next } });
    }
    expect((await check({ url, path: "price" })).before).toBeNull();
    expect((await app.call(`GET /api/workers/${ada.id}`)).skills).toEqual(ada.skills);
    const gone = await app.send(`POST /api/workers/${ada.id}/skills/check`, { url, path, ref: "none" });
    expect([gone.status, gone.body.errors[0].path]).toEqual([400, "ref"]);
    const unknown = await app.send(`POST /api/workers/${ada.id}/skills/check`, { url, path, name: "none" });
    expect([unknown.status, unknown.body.errors[0].path]).toEqual([400, "name"]);
  });

  it("are cut after 2 MiB", async () => {
    await using world = await openSkillApp();
    const { app, forge, weigh } = world;
    const { body: ada } = await world.create([weigh]);
    await forge.commit("main", { "weigh/big.txt": "line of text\n".repeat(200_000) });
    const found = await app.call(`POST /api/workers/${ada.id}/skills/check`, {
      url: weigh.url,
      path: "weigh",
    });
    expect(found.truncated).toBe(true);
    expect(found.diff.length).toBe(2 * 1024 * 1024);
    expect(found.insertions).toBe(200_000);
  });
});
