import { join } from "node:path";
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
  },
);

export { join };
