import { expect, it } from "vitest";
import { describePins, PINS, selectPins } from "./pins.ts";
import { Rig } from "./rig.ts";

// Real CLIs that speak the Agent Client Protocol, with a scripted model. `make test-engines` sets the
// variables. Gemini cannot load the session of an earlier process, reports it, and gets the history as text.
const SPEAK: Record<string, { args: string[]; forgets?: boolean }> = {
  gemini: { args: ["--acp", "--model", "gemini-2.5-pro"], forgets: true },
  opencode: { args: ["acp"] },
  copilot: { args: ["--acp"] },
};
const full = new Set(selectPins().map(({ kind }) => kind));
const brief = new Set(selectPins("SVC_TEST_ENGINES_BRIEF").map(({ kind }) => kind));
const engines = PINS.filter(({ kind }) => kind in SPEAK && (full.has(kind) || brief.has(kind)));
// In a brief run, each agent either asks or resumes.
const asks = (kind: string) => full.has(kind) || kind === "gemini";
const resumes = (kind: string) => full.has(kind) || kind !== "gemini";
const PATIENCE_MS = 600_000;

describePins(
  "$kind $version by the Agent Client Protocol (decision 0011)",
  engines,
  2 * PATIENCE_MS,
  (pin) => {
    it.runIf(resumes(pin.kind))(
      "replies, uses its tools and svc, and continues its session after a restart",
      async () => {
        const acp = SPEAK[pin.kind]?.args ?? [];
        await using rig = await Rig.open(pin, { acp, timeout: "9m" });
        const first = await rig.say(
          "This is [[id:first-word]]. [[tool:svc ctl whoami > out.txt; echo made]] [[text:I am here.]]",
        );
        expect(first.execution, first.log).toMatchObject({ status: "completed" });
        expect(first.execution.result, first.log).toMatch(/I am here\./);
        expect(first.log).toMatch(/^\S+ > /m);
        expect(await Deno.readTextFile(rig.file("out.txt"))).toContain(rig.worker.id);
        expect(first.execution.session_id).not.toBe("");
        await rig.restart();
        const second = await rig.say("What did I say? [[recall]]");
        expect(second.execution, second.log).toMatchObject({ status: "completed" });
        expect(second.execution.result, second.log).toMatch(/recall: first-word \| user texts: \d/);
        if (SPEAK[pin.kind]?.forgets) {
          expect(second.log).toMatch(/a new one starts with the earlier conversation/);
        } else {
          expect(second.execution.session_id).toBe(first.execution.session_id);
          expect(second.execution.result).not.toMatch(/I am here/);
        }
        expect(await rig.leftovers()).toEqual([]);
      },
    );

    it.runIf(asks(pin.kind))(
      "asks a person before it exceeds its permissions, and ends in the middle of a turn",
      async () => {
        const acp = SPEAK[pin.kind]?.args ?? [];
        await using rig = await Rig.open(pin, {
          acp,
          timeout: "9m",
          permissions: "edit",
          ...(pin.kind === "opencode"
            ? { env: { OPENCODE_PERMISSION: JSON.stringify({ bash: "ask" }) } }
            : {}),
        });
        await rig.send("[[tool:echo no > made.txt]] [[text:So be it.]]");
        await rig.app.until("question.opened", 1, PATIENCE_MS);
        const [question] = await rig.app.call("GET /api/questions");
        expect(question).toMatchObject({ status: "open", text: expect.stringContaining("made.txt") });
        await rig.app.call(`POST /api/questions/${question.id}/answer`, { answer: question.default });
        await rig.app.settle(PATIENCE_MS);
        await expect(Deno.stat(rig.file("made.txt"))).rejects.toThrow(Deno.errors.NotFound);
        await rig.send("[[tool:echo again > made.txt]] [[text:Good.]]");
        await rig.app.until("question.opened", 2, PATIENCE_MS);
        const { execution } = await rig.latest();
        await rig.app.call(`POST /api/executions/${execution.id}/cancel`, {});
        await rig.app.settle(PATIENCE_MS);
        expect((await rig.latest()).execution).toMatchObject({ status: "failed", failure: "cancelled" });
        expect(await rig.leftovers()).toEqual([]);
      },
    );
  },
);
