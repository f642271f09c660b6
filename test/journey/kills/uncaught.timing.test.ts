import { join } from "node:path";
import { expect, it, vi } from "vitest";
import { createTempDir, startServer } from "../../harness/service/process.ts";

// The long run: SVC_TEST_CYCLES=100.
const CYCLES = Number(Deno.env.get("SVC_TEST_CYCLES") ?? 3);

vi.setConfig({ testTimeout: 60_000 + CYCLES * 9_000 });

it(`${CYCLES} starts and stops in a row: each is ready, and exits with 0 within a second [SHD-1]`, async () => {
  await using folder = await createTempDir();
  for (let cycle = 1; cycle <= CYCLES; cycle++) {
    await using server = await startServer({ dataDir: folder.path, env: { SVC_AUTH_PASSWORD: "pass" } });
    const signal = cycle % 2 === 0 ? "SIGINT" : "SIGTERM";
    const { code, ms } = await server.end(signal);
    expect([cycle, code]).toEqual([cycle, 0]);
    expect(ms).toBeLessThan(1_000);
    await expect(Deno.stat(join(folder.path, "server.json"))).rejects.toThrow();
  }
});
