import { describe, expect, it } from "vitest";
import { Wakeups } from "../../../src/base/wakeups.ts";
import { openApp } from "../../harness/service/app.ts";

/** Wakeups that reach no stage. */
class SilentWakeups extends Wakeups {
  override notify(): void {}
}

describe("without any wakeup (architecture, sentence 1) [DSP-6]", () => {
  it("each stage still finds its work within a second [DSP-6]", async () => {
    await using app = await openApp({ wakeups: new SilentWakeups() });
    await app.call("POST /api/workers", { name: "Ada" });
    const { id } = await app.call("POST /api/local/sessions");
    await app.call(`POST /api/local/sessions/${id}/messages`, { content: "hello" });
    await app.settle();
    const steps = [
      "message.received",
      "message.feeding",
      "task.created",
      "execution.started",
      "message.sent",
    ];
    const times: number[] = [];
    for (const kind of steps) {
      const row = await app.db.first<{ at: number }>("select at from journal where kind = ?", [kind]);
      times.push(row?.at ?? NaN);
    }
    for (const [index, at] of times.entries()) {
      if (index > 0) expect(at - (times[index - 1] ?? 0), steps[index]).toBeLessThan(1_200);
    }
  });
});
