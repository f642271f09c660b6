import { expect, it } from "vitest";
import { createHealthMonitor } from "../../../src/pipeline/maintenance/health_monitor.ts";
import type { Health, Platform } from "../../../src/platform/platform.ts";
import { listEvents } from "../../../src/store/events/journal.ts";
import { openApp } from "../../harness/service/app.ts";
import { TestClock } from "../../harness/clock.ts";
import { waitUntil } from "../../harness/wait.ts";

it("the health monitor reports once a platform that is down for a minute, its return, and a nearly full disk (contract 11)", async () => {
  const clock = new TestClock();
  await using app = await openApp({ clock });
  const { wakeups } = app.server.parts;
  let free = 5e9;
  const health: Health = { state: "down", since: clock.now(), last_event_at: null, error: "no route" };
  const platform = { name: "alerts", health: () => health } as Platform;
  const stage = createHealthMonitor({
    ...{ db: app.db, clock, wakeups, platforms: [platform], root: "/data" },
    freeBytes: () => Promise.resolve(free),
  });
  stage.start();
  const told = async (ms: number) => {
    clock.advance(ms);
    const { rounds } = stage;
    await waitUntil("it has looked", () => {
      stage.wake();
      return stage.rounds > rounds + 1;
    });
    const kinds = ["platform.down", "platform.up", "system.disk_low"];
    return (await listEvents(app.db, 0, 20, { kinds })).map(({ kind }) => kind);
  };
  expect(await told(59_999)).toEqual([]);
  expect(await told(1)).toEqual(["platform.down"]);
  health.state = "connecting";
  expect(await told(300_000)).toEqual(["platform.down"]);
  health.state = "connected";
  free = 999_999_999;
  expect(await told(0)).toEqual(["platform.down", "platform.up", "system.disk_low"]);
  free = 1_500_000_000;
  expect(await told(0)).toHaveLength(3);
  free = 500_000_000;
  expect(await told(0)).toHaveLength(3);
  health.state = "refused";
  free = 2_000_000_000;
  expect(await told(0)).toHaveLength(4);
  free = 0;
  expect((await told(0)).slice(3)).toEqual(["platform.down", "system.disk_low"]);
  await stage.stop();
});
