import { expect, it } from "vitest";
import { findBoxFault } from "../../src/engine/process/box_fault.ts";
import { BOX_SETTINGS } from "../harness/box.ts";
import { startGitServer } from "../harness/service/git_server.ts";
import { createTempDir } from "../harness/service/process.ts";
import { describePins, selectPins } from "./pins.ts";
import { Rig, type WarmPin } from "./rig.ts";

const DESCRIPTION = "Parcel-canary-description for weighing";
const BODY = "parcel-canary-body";
const STAYING = ["claude", "codex"];
const fault = await findBoxFault(BOX_SETTINGS);

/** The tool with which each engine reads a file, with its argument for the path. */
const READ: Record<string, string> = {
  claude: `[[call:Read {"file_path":"{SKILL.md}"}]]`,
  gemini: `[[call:read_file {"file_path":"{SKILL.md}"}]]`,
  qwen: `[[call:read_file {"file_path":"{SKILL.md}"}]]`,
  opencode: `[[call:read {"filePath":"{SKILL.md}"}]]`,
  copilot: `[[call:view {"path":"{SKILL.md}"}]]`,
};

async function openWithSkill(pin: WarmPin, options: Parameters<typeof Rig.open>[1] = {}) {
  const folder = await createTempDir();
  const forge = await startGitServer({ dir: folder.path });
  const text = `---\nname: weigh-parcels\ndescription: ${DESCRIPTION}\n---\n\n${BODY}\n`;
  const ref = await forge.commit("main", { "weigh/SKILL.md": text, "weigh/notes.md": "notes\n" });
  const rig = await Rig.open(pin, { timeout: "165s", ...options });
  // The first run gives the directory to the user of the box.
  if (options.box !== undefined) await rig.say("Say hello.");
  await rig.app.call(`PUT /api/workers/${rig.worker.id}`, {
    skills: [{ url: forge.url, ref, path: "weigh" }],
  });
  return {
    rig,
    async [Symbol.asyncDispose]() {
      await rig[Symbol.asyncDispose]();
      await forge[Symbol.asyncDispose]();
      await folder[Symbol.asyncDispose]();
    },
  };
}

const ways = selectPins().flatMap((pin): (WarmPin & { way: string; box?: "host" })[] => {
  const all = [
    { ...pin, way: "a turn each" },
    ...(STAYING.includes(pin.kind) ? [{ ...pin, way: "staying open", warm: {} }] : []),
  ];
  const boxed = all.slice(-1).map((one) => ({ ...one, way: `${one.way}, in a box`, box: "host" as const }));
  return [...all, ...boxed];
});

describePins("$kind $version with a skill of the worker, $way", ways, 300_000, (pin) => {
  it.skipIf(pin.box !== undefined && fault !== null)("reads its description and its text", async () => {
    await using world = await openWithSkill(pin, {
      permissions: "edit",
      ...(pin.box === undefined ? {} : { box: pin.box }),
    });
    const { rig } = world;
    const files = await Array.fromAsync(Deno.readDir(rig.worker.work_dir));
    const finds = pin.kind === "claude" || pin.kind === "codex" && "warm" in pin;
    const ask = pin.kind === "claude"
      ? `Weigh. [[call:Skill {"skill":"weigh-parcels"}]]`
      : finds
      ? "Weigh with $weigh-parcels."
      : `Weigh. ${READ[pin.kind] ?? "[[tool:cat {SKILL.md}]]"}`;
    let sent = "";
    rig.model.onBody = (body) => sent += body;
    for (const round of [1, 2]) {
      const seen = await rig.say(`Hello ${round}.`);
      expect(seen.execution, seen.log).toMatchObject({ status: "completed" });
      expect(sent.includes(DESCRIPTION), seen.log).toBe(true);
      sent = "";
      const { execution, log } = await rig.say(ask);
      expect(execution, log).toMatchObject({ status: "completed" });
      expect(sent.includes(BODY), log).toBe(true);
    }
    expect(await Array.fromAsync(Deno.readDir(rig.worker.work_dir))).toEqual(files);
    if (!("warm" in pin)) expect(await rig.leftovers()).toEqual([]);
  });
});

const ASKING = selectPins().filter(({ kind }) => STAYING.includes(kind));

describePins("$kind $version with permissions: ask and a skill", ASKING, 300_000, (pin) => {
  it("knows the skill without a question", async () => {
    await using world = await openWithSkill(pin, { permissions: "ask" });
    let sent = "";
    world.rig.model.onBody = (body) => sent += body;
    const { execution, log } = await world.rig.say("Hello.");
    expect(execution, log).toMatchObject({ status: "completed" });
    expect(sent.includes(DESCRIPTION), log).toBe(true);
  });
});

const CLAUDE = selectPins().filter(({ kind }) => kind === "claude");

describePins("$kind $version with a skill that asks for more", CLAUDE, 300_000, (pin) => {
  it("gets no permissions, hooks and commands from it", async () => {
    await using folder = await createTempDir();
    await using forge = await startGitServer({ dir: folder.path });
    const marks = ["hook", "line", "tool"].map((name) => `${folder.path}/${name}`);
    const [hook, line, tool] = marks;
    const text = `---\nname: weigh-parcels\ndescription: x\nallowed-tools: Bash\nhooks:\n  PreToolUse:\n` +
      `    - matcher: "*"\n      hooks:\n        - type: command\n          command: "touch ${hook}"\n---\n` +
      `!\`touch ${line}\`\n[[tool:touch ${tool}]]\n`;
    const ref = await forge.commit("main", { "SKILL.md": text });
    await using rig = await Rig.open(pin, { permissions: "edit" });
    await rig.app.call(`PUT /api/workers/${rig.worker.id}`, { skills: [{ url: forge.url, ref }] });
    const { log } = await rig.say(`Weigh. [[call:Skill {"skill":"weigh-parcels"}]]`);
    expect(log).toContain("touch");
    for (const mark of marks) await expect(Deno.stat(mark), `${mark}\n${log}`).rejects.toThrow();
  });
});
