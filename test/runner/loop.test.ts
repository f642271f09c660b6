import { dirname } from "node:path";
import { expect, it } from "vitest";
import { logPath } from "../../src/base/paths.ts";
import { RunnerLoop } from "../../src/runner/loop.ts";
import { FakeService, problem, runOptionsOf, wireOrder } from "../harness/fake_service.ts";
import { eventually } from "../harness/wait.ts";

const TIMES = { epoch: 1, version: "v", lease_ms: 120_000, beat_ms: 10_000, margin_ms: 20_000 };

it("a run behind another one of its directory does not begin after a stop, and goes back to the queue (contract 18.2)", async () => {
  const root = await Deno.makeTempDir({ prefix: "svc-test-" });
  await using _removed = { [Symbol.asyncDispose]: () => Deno.remove(root, { recursive: true }) };
  const first = wireOrder(root);
  // Another name of the same directory.
  const second = wireOrder(root);
  await Deno.mkdir(first.work_dir, { recursive: true });
  await Deno.symlink(first.work_dir, second.work_dir);
  const stored = Promise.withResolvers<void>();
  await using service = new FakeService(async ({ path }, times) => {
    if (path.includes("/log?")) return Response.json({ size: 1_000_000 });
    if (path.includes(first.execution.execution_id)) {
      if (times === 1) return problem(503, "unavailable");
      await stored.promise;
    }
    if (path !== "/api/runners/claim") return Response.json({});
    if (times > 2) await stored.promise;
    return Response.json({ ...TIMES, run: [first, second][times - 1] ?? null });
  });
  const options = runOptionsOf(service.link, root);
  const loop = new RunnerLoop({ ...options, maxRuns: 4, place: crypto.randomUUID() });
  const running = loop.run();
  try {
    await eventually(
      "the first one ends, the second one waits",
      () => Promise.resolve(service.of("/end").length === 2 && loop.running === 2),
    );
    const stopped = loop.stop(0, new AbortController().signal);
    setTimeout(stored.resolve, 50);
    await stopped;
    await running;
  } finally {
    stored.resolve();
  }
  const ends = service.of(`${second.execution.execution_id}/end`).map(({ text }) => JSON.parse(text));
  expect(ends.map(({ interruption, outcome }) => [interruption, outcome.status])).toEqual([
    ["shutdown", "failed"],
  ]);
  // What was told is the service's; nothing stays here.
  for (const { execution: { execution_id: id } } of [first, second]) {
    await expect(Deno.lstat(logPath(options.paths, id))).rejects.toThrow(Deno.errors.NotFound);
    expect([...Deno.readDirSync(dirname(logPath(options.paths, id)))]).toEqual([]);
  }
  expect([...Deno.readDirSync(`${root}/open`)]).toEqual([]);
});
