import { expect, it } from "vitest";
import { svc } from "../harness/service/process.ts";
import { formatSkill, openSkillApp } from "../harness/service/skill_app.ts";

it("svc ctl skill adds a skill at a commit, shows its changes before an update, and removes it (contract 28)", async () => {
  await using world = await openSkillApp();
  const { app, forge, ref } = world;
  const env = { SVC_URL: app.url, SVC_TOKEN: await app.token() };
  const ctl = (args: string[], stdin?: string) =>
    svc(["ctl", "skill", ...args], { dataDir: app.dataDir, env, ...(stdin === undefined ? {} : { stdin }) });
  const { id } = await app.call("POST /api/workers", { name: "Ada" });
  const skills = async () => (await app.call(`GET /api/workers/${id}`)).skills;

  const added = await ctl(["add", "Ada", forge.url, "--path", "weigh", "--ref", "main"]);
  expect([added.code, added.err]).toEqual([0, expect.stringContaining(`weigh-parcels is at ${ref}`)]);
  expect(await skills()).toMatchObject([{ ref, path: "weigh", name: "weigh-parcels" }]);
  const again = await ctl(["add", "Ada", forge.url, "--path", "weigh"]);
  expect([again.code, again.err]).toEqual([
    5,
    expect.stringContaining("svc ctl skill update Ada weigh-parcels"),
  ]);
  expect((await ctl(["list", "Ada"])).out).toContain(`weigh-parcels\t${ref}\t${forge.url}\tweigh`);
  expect((await ctl(["update", "Ada"])).err).toContain("up to date");

  const next = await forge.commit("main", {
    "weigh/SKILL.md": formatSkill("weigh-parcels", "Weigh it once."),
  });
  const shown = await ctl(["update", "Ada", "weigh-parcels"], "");
  expect(shown.code).toBe(2);
  expect(shown.out).toContain("-Weigh it twice.\n+Weigh it once.");
  expect(shown.err).toContain("--yes");
  const declined = await ctl(["update", "Ada", "weigh-parcels"], "n\n");
  expect([declined.code, declined.err]).toEqual([7, expect.stringContaining("Changed nothing")]);
  expect(await skills()).toMatchObject([{ ref }]);
  const taken = await ctl(["update", "Ada", "weigh-parcels", "--yes"]);
  expect([taken.code, taken.err]).toEqual([0, expect.stringContaining(`${ref} to ${next}, 1 file changed`)]);
  expect(taken.out).toContain("+Weigh it once.");
  expect(await skills()).toMatchObject([{ ref: next }]);
  const back = await ctl(["update", "Ada", "--ref", ref, "--yes", "--json"]);
  expect(JSON.parse(back.out).skills).toMatchObject([{ ref }]);
  expect(back.err).toContain("+Weigh it twice.");

  const none = await ctl(["remove", "Ada", "none"]);
  expect([none.code, none.err]).toEqual([3, expect.stringContaining("Its skills: weigh-parcels")]);
  expect((await ctl(["remove", "Ada", "weigh-parcels"])).code).toBe(0);
  expect(await skills()).toEqual([]);
  const gone = await ctl(["add", "Ada", forge.url, "--ref", "none"]);
  expect([gone.code, gone.err]).toEqual([2, expect.stringContaining("no branch and no tag")]);
});
