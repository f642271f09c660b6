import { expect, it } from "vitest";
import { describePins, selectPins } from "./pins.ts";
import { Rig } from "./rig.ts";

// Words for a run in progress, with real CLIs and a scripted model. `make test-engines` sets the variables.

const WARM = { keep: "60s", max: 2, max_turns: 20, max_age: "1h", max_rss_mb: 4_000 };
const STEERABLE = selectPins().filter(({ kind }) => kind === "claude" || kind === "codex")
  .map((pin) => ({ ...pin, warm: WARM }));

describePins("$kind $version takes words during a turn (contract 23)", STEERABLE, 300_000, (pin) => {
  it("reads them at its next tool call, in the same run, and confirms them [STR-1]", async () => {
    await using rig = await Rig.open(pin);
    await rig.send(
      "First. [[tool:touch started; while [ ! -e go ]; do sleep 0.1; done]] [[tool:echo two]] [[text:ONE]]",
    );
    await rig.untilFile("started");
    const { execution: running } = await rig.latest();
    const words = { content: "[[text:STEERED]] second" };
    const steer = await rig.app.call(`POST /api/executions/${running.id}/steer`, words);
    await Deno.writeTextFile(rig.file("go"), "");
    await rig.app.settle(170_000);
    const { execution, log } = await rig.latest();
    expect(execution, log).toMatchObject({ id: running.id, status: "completed" });
    const [row] = await rig.app.db.read<{ status: string }>("select status from steer where id = ?", [
      steer.id,
    ]);
    expect(row, log).toEqual({ status: "delivered" });
    expect(await rig.app.call("GET /api/executions")).toHaveLength(1);
    const tasks = await rig.app.call(`GET /api/tasks?worker_id=${rig.worker.id}`);
    expect(tasks, log).toHaveLength(1);
  });
});
