import { describe, expect, it } from "vitest";
import { openApp } from "../../harness/service/app.ts";

describe("countdowns [DSP-7, DSP-8]", () => {
  it("start on time: never early, and within 20 ms on an idle machine [DSP-7]", async () => {
    await using app = await openApp();
    const worker = await app.call("POST /api/workers", { name: "Ada" });
    const base = { message_id: "m", worker_id: worker.id, instruction: "x", type: "countdown" };
    // Countdowns are at least 5 s ahead, and 20 requests take their time.
    const from = Date.now() + 6_000;
    for (let i = 0; i < 20; i++) await app.call("POST /api/tasks", { ...base, scheduled_at: from + i * 53 });
    await app.until("execution.completed", 20);
    const rows = await app.db.read<{ late: number }>(
      "select started_at - scheduled_at as late from execution join task on task.id = task_id order by late",
    );
    expect(rows[0]?.late).toBeGreaterThanOrEqual(0);
    expect(rows[10]?.late).toBeLessThanOrEqual(20);
    expect(rows.at(-1)?.late).toBeLessThanOrEqual(200);
  });
});
