import { join } from "node:path";
import { expect, it } from "vitest";
import { TestClock } from "../harness/clock.ts";
import { openApp } from "../harness/service/app.ts";
import { createTempDir } from "../harness/service/process.ts";

it.each([
  ["Asia/Tokyo", "3pm", 6],
  ["America/Los_Angeles", "3pm", 23],
  ["Asia/Kathmandu", "5:45am", 0],
  ["JST-9", "15:00", 6],
  ["Asia/Tokyo", "3pm (America/New_York)", 20],
])(
  "a limit without a time zone ends in that of the engine's process, which is not the service's: TZ=%s, %s",
  async (TZ, clock, hour) => {
    await using folder = await createTempDir();
    const command = join(folder.path, "claude");
    const result = JSON.stringify({
      ...{ type: "result", is_error: true, api_error_status: 429 },
      result: `You've hit your limit · resets ${clock}`,
    });
    const script = `#!/bin/sh\n[ "$1" = --version ] && { echo 99.0.0; exit 0; }\ncat >/dev/null; echo '${
      result.replace("'", "'\\''")
    }'; exit 1\n`;
    await Deno.writeTextFile(command, script, { mode: 0o755 });
    await using app = await openApp({
      config: {
        scheduler: { time_zone: "Australia/Adelaide" },
        engines: { default: "claude", claude: { command, env: { TZ } } },
      },
      // Winter time in the north.
      clock: new TestClock(Date.parse("2026-12-01T23:30:00Z")),
    });
    const worker = await app.call("POST /api/workers", { name: "Ada" });
    const session = await app.call("POST /api/local/sessions", { worker_id: worker.id });
    await app.call(`POST /api/local/sessions/${session.id}/messages`, { content: "hello" });
    await app.until("engine.limited");
    const [{ limited_until: until }] = (await app.call("GET /api/engines"))
      .filter(({ name }: { name: string }) => name === "claude");
    expect(new Date(until).getUTCHours()).toBe(hour);
  },
);
