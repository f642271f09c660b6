import { expect, it } from "vitest";
import { openApp } from "../harness/service/app.ts";
import { listWindows, storeWindow } from "../../src/store/workers/engine_window.ts";

it("storeWindow() limits the windows of an engine to twenty, and their values and times (contract 14)", async () => {
  await using app = await openApp({ inMemory: true });
  const seen_at = 1_000;
  const save = (name: string, utilization: number, resets_at: number | null = null) =>
    app.db.write([storeWindow({ engine: "e", name, utilization, resets_at, seen_at })]);
  for (let no = 10; no < 40; no++) await save(`w${no}`, -1);
  await save("w10", 1e300, Number.MAX_SAFE_INTEGER);
  await save("w12", 0.5, 1_234.5);
  const windows = await listWindows(app.db);
  expect(windows).toHaveLength(20);
  expect(windows[0]).toMatchObject({ name: "w10", utilization: 2, resets_at: seen_at + 8 * 86_400_000 });
  expect(windows[2]).toMatchObject({ name: "w12", utilization: 0.5, resets_at: 1_234 });
  expect(windows[1]).toMatchObject({ name: "w11", utilization: 0, resets_at: null });
});
