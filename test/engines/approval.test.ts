import { expect, it } from "vitest";
import { describePins, type Pin, selectPins } from "./pins.ts";
import { Rig } from "./rig.ts";
import { waitForValue } from "../harness/wait.ts";
import type { Json } from "../harness/service/client.ts";

// Tool calls that a person allows or denies, with real CLIs and a scripted model. `make test-engines` sets the variables.

const ASKING = selectPins().filter(({ kind }) => kind === "claude" || kind === "codex");
const WARM = { keep: "60s", max: 2, max_turns: 20, max_age: "1h", max_rss_mb: 4_000 };
const PATIENCE_MS = 300_000;

/** A prompt whose tool call creates a file with a program that no permission but `full` allows. */
const make = (name: string) => `Go. [[tool:perl -e 'open(F,">${name}")']]`;

async function waitForQuestion(rig: Rig, known: readonly string[] = []): Promise<Json> {
  return await waitForValue(async () => {
    const open: Json[] = await rig.app.call("GET /api/questions?status=open");
    return open.find(({ id }) => !known.includes(id)) ?? null;
  }, 170_000);
}

const answer = (rig: Rig, id: string, given: string) =>
  rig.app.call(`POST /api/questions/${id}/answer`, { answer: given });

const exists = (path: string) => Deno.stat(path).then(() => true, () => false);

async function settle(rig: Rig) {
  await rig.app.settle(170_000);
  return await rig.latest();
}

function variants(pins: readonly Pin[]) {
  return pins.flatMap((pin) => [{ ...pin, name: "once" }, { ...pin, name: "open", warm: WARM }]);
}

describePins(
  "$kind $version with permissions: ask, $name (contract 23)",
  variants(ASKING),
  PATIENCE_MS,
  (pin) => {
    it("runs an allowed call, and continues after a denied one [APV-1]", async () => {
      await using rig = await Rig.open(pin, { permissions: "ask" });
      for (const [given, ran] of [["Allow", true], ["Deny", false]] as const) {
        await rig.send(`${make(given)} [[text:DONE]]`);
        const question = await waitForQuestion(rig);
        expect(question).toMatchObject({
          options: ["Allow", "Allow in this conversation", "Deny"],
          default: "Deny",
          arguments: expect.stringContaining("perl"),
          text: expect.stringContaining("perl"),
        });
        expect(await exists(rig.file(given))).toBe(false);
        await answer(rig, question.id, given);
        const { execution, log } = await settle(rig);
        expect(execution, log).toMatchObject({
          status: "completed",
          result: expect.stringContaining("DONE"),
        });
        expect(await exists(rig.file(given)), log).toBe(ran);
        expect(log).toMatch(new RegExp(`was ${ran ? "allowed" : "denied"}: answered by user:admin`));
      }
    });

    it("remembers a call for the conversation, and asks about other arguments [APV-1]", async () => {
      await using rig = await Rig.open(pin, { permissions: "ask" });
      await rig.send(`${make("once")} [[text:DONE]]`);
      const first = await waitForQuestion(rig);
      await answer(rig, first.id, "Allow in this conversation");
      await settle(rig);
      await Deno.remove(rig.file("once"));
      const { log } = await rig.say(`${make("once")} [[text:DONE]]`);
      expect(await exists(rig.file("once")), log).toBe(true);
      expect(log).toMatch(/allowed earlier in this conversation/);
      await rig.send(`${make("other")} [[text:DONE]]`);
      const second = await waitForQuestion(rig);
      expect(second.id).not.toBe(first.id);
      await rig.app.call(`POST /api/executions/${second.execution_id}/cancel`, {});
      expect(await rig.app.call(`GET /api/questions/${second.id}`)).toMatchObject({ status: "cancelled" });
      await rig.app.settle(170_000);
      expect(await exists(rig.file("other"))).toBe(false);
      expect(await rig.leftovers()).toEqual([]);
    });

    it("asks in spite of rules, hooks and tool servers in the work directory", async () => {
      await using rig = await Rig.open(pin, { permissions: "ask" });
      await writeRules(rig);
      await rig.send(`${make("made")} [[text:DONE]]`);
      const question = await waitForQuestion(rig);
      await answer(rig, question.id, "Deny");
      const { execution, log } = await settle(rig);
      expect(execution, log).toMatchObject({ status: "completed" });
      for (const name of ["made", "hooked", "served"]) {
        expect(await exists(rig.file(name)), name).toBe(false);
      }
    });
  },
);

/** Writes settings that would let the calls through, and programs that would show that they count. */
async function writeRules(rig: Rig): Promise<void> {
  const write = async (name: string, text: string) => {
    await Deno.mkdir(rig.file(name.split("/").slice(0, -1).join("/")), { recursive: true });
    await Deno.writeTextFile(rig.file(name), text);
  };
  const hook = [{ matcher: "*", hooks: [{ type: "command", command: `touch ${rig.file("hooked")}` }] }];
  const hooks = { PreToolUse: hook, SessionStart: hook };
  const server = { command: "touch", args: [rig.file("served")] };
  const permissions = { allow: ["Bash", "Bash(perl:*)"] };
  await write(".claude/settings.json", JSON.stringify({ permissions, hooks }));
  await write(".mcp.json", JSON.stringify({ mcpServers: { served: { type: "stdio", ...server } } }));
  await write(
    ".codex/config.toml",
    `approval_policy = "never"\n[mcp_servers.served]\ncommand = "touch"\nargs = ["${rig.file("served")}"]\n`,
  );
  await write(".codex/rules/all.rules", `prefix_rule(pattern=["perl"], decision="allow")\n`);
  await write(".codex/hooks.json", JSON.stringify({ hooks }));
}

const CODEX = ASKING.filter(({ kind }) => kind === "codex");

describePins("$kind $version with permissions: ask and rules in its state", CODEX, PATIENCE_MS, (pin) => {
  it("does not run until they are removed (contract 23)", async () => {
    await using rig = await Rig.open(pin, { permissions: "ask" });
    const rules = `${rig.app.dataDir}/state/${rig.worker.id}/codex/rules`;
    await Deno.mkdir(rules, { recursive: true });
    await Deno.writeTextFile(`${rules}/all.rules`, `prefix_rule(pattern=["perl"], decision="allow")\n`);
    const { execution } = await rig.say(`${make("made")} [[text:DONE]]`);
    const error = expect.stringContaining(rules);
    expect(execution).toMatchObject({ status: "failed", failure: "setup", error });
    await Deno.remove(rules, { recursive: true });
    const after = await rig.say("Say hello.");
    expect(after.execution, after.log).toMatchObject({ status: "completed" });
  });
});

describePins("$kind $version with permissions: ask and an open terminal", CODEX, PATIENCE_MS, (pin) => {
  it("starts no command that the agent could type into (contract 23)", async () => {
    await using rig = await Rig.open(pin, { permissions: "ask" });
    const { execution } = await rig.say('Go. [[call:exec_command {"cmd":"bash","tty":true}]] [[text:DONE]]');
    const result = expect.stringContaining("TTY execution is disabled");
    expect(execution).toMatchObject({ status: "completed", result });
  });
});

const GEMINI = selectPins().filter(({ kind }) => kind === "gemini");

describePins("$kind $version by ACP with permissions: ask (contract 23)", GEMINI, PATIENCE_MS, (pin) => {
  it("runs an allowed call, and continues after a denied one [APV-1]", async () => {
    const acp = ["--acp", "--model", "gemini-2.5-pro"];
    await using rig = await Rig.open(pin, { permissions: "ask", acp, timeout: "9m" });
    for (const [given, ran] of [["Allow", true], ["Deny", false]] as const) {
      await rig.send(`${make(given)} [[text:DONE]]`);
      const question = await waitForQuestion(rig);
      const options = ["Allow", "Allow in this conversation", "Deny"];
      const whole = expect.stringContaining(`>${given}`);
      expect(question).toMatchObject({ options, default: "Deny", arguments: whole });
      await answer(rig, question.id, given);
      const { execution, log } = await settle(rig);
      expect(execution, log).toMatchObject({ status: "completed" });
      expect(await exists(rig.file(given)), log).toBe(ran);
    }
  });
});
