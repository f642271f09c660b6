import { expect, it } from "vitest";
import { TestClock } from "../harness/clock.ts";
import { describePins, selectPins } from "./pins.ts";
import { Rig } from "./rig.ts";

describePins("$kind $version under a budget that stops (contract 14)", selectPins(), 300_000, (pin) => {
  it("ends in the middle of a run when its minutes are used up, and leaves nothing behind", async () => {
    const clock = new TestClock(Date.now());
    await using rig = await Rig.open(pin, { clock });
    const { app } = rig;
    const budget = { name: "Time", unit: "minutes", limit: 10, period: "24h", action: "stop" };
    await app.call("POST /api/budgets", budget);
    await rig.send("[[tool:touch begun; for i in 1 2 3 4 5 6 7 8 9; do sleep 4; done]]");
    await rig.untilFile("begun");
    clock.advance(10 * 60_000);
    await app.until("task.failed", 1, 60_000);
    const { execution, log } = await rig.latest();
    expect(execution, log).toMatchObject({
      failure: "budget",
      error: expect.stringMatching(/^the budget "Time" is used up: 1\d(\.\d)? of 10 minutes \(24h\)$/),
    });
    expect(await rig.leftovers()).toEqual([]);
    const [shown] = await app.call("GET /api/budgets");
    expect(shown).toMatchObject({ state: "hard", reserved: 0 });
  });

  it.skipIf(pin.kind !== "codex")("reports the windows of its provider", async () => {
    await using rig = await Rig.open(pin);
    const reset = Math.floor(Date.now() / 1000) + 3_600;
    rig.model.headers = {
      "x-codex-primary-used-percent": "85",
      "x-codex-primary-window-minutes": "300",
      "x-codex-primary-reset-at": String(reset),
    };
    const { execution, log } = await rig.say("Say hello.");
    expect(execution, log).toMatchObject({ status: "completed" });
    expect((await rig.app.call("GET /api/engines/codex")).windows).toMatchObject([
      { name: "5h", utilization: 0.85, resets_at: reset * 1000 },
    ]);
  });

  // Only these engines report usage during a run.
  it.skipIf(pin.kind !== "claude" && pin.kind !== "opencode")(
    "ends in the middle of a run as soon as it reports that its tokens are used up",
    async () => {
      await using rig = await Rig.open(pin);
      const { app } = rig;
      const budget = { name: "Tokens", unit: "tokens", limit: 400, period: "24h", action: "stop" };
      await app.call("POST /api/budgets", budget);
      const steps = Array.from({ length: 8 }, (_, index) => `[[tool:sleep 1; echo ${index} >> steps]]`);
      await rig.send(steps.join(" "));
      await app.until("task.failed", 1, 120_000);
      const { execution, log } = await rig.latest();
      expect(execution, log).toMatchObject({ failure: "budget" });
      const { input_tokens, output_tokens } = execution.usage;
      // A run exceeds the limit by one report at most: 150 tokens in and up to 40 out. An interrupted
      // Claude Code may omit the last step from its total.
      expect(input_tokens + output_tokens).toBeGreaterThanOrEqual(400 - 190);
      expect(input_tokens + output_tokens).toBeLessThanOrEqual(400 + 190);
      expect((await Deno.readTextFile(rig.file("steps"))).split("\n").length).toBeLessThan(8);
    },
  );
});
