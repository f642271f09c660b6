import { dirname } from "node:path";
import { expect, it } from "vitest";
import { type Clock, systemClock } from "../../src/base/clock.ts";
import { buildDataPaths, getLogPath } from "../../src/base/paths.ts";
import type { WireOrder } from "../../src/domain/workers/runner.ts";
import { RunnerLoop } from "../../src/runner/loop.ts";
import { buildProblem, buildRunOptions, buildWireOrder, FakeService } from "../harness/fakes/fake_service.ts";
import { createTempDir } from "../harness/service/process.ts";
import { waitUntil } from "../harness/wait.ts";

function buildLoop(service: FakeService, root: string, clock: Clock = systemClock): RunnerLoop {
  const options = { ...buildRunOptions(service.link, root), clock };
  return new RunnerLoop({ ...options, maxRuns: 4, place: crypto.randomUUID() });
}

const TIMES = { epoch: 1, version: "v", lease_ms: 120_000, beat_ms: 10_000, margin_ms: 20_000 };

it("a run waiting for its directory does not start after a stop, and returns to the queue (contract 18.2) [RUN-1]", async () => {
  await using folder = await createTempDir();
  const root = folder.path;
  const first = buildWireOrder(root);
  // Another path to the same directory.
  const second = buildWireOrder(root);
  await Deno.mkdir(first.work_dir, { recursive: true });
  await Deno.symlink(first.work_dir, second.work_dir);
  const stored = Promise.withResolvers<void>();
  await using service = new FakeService(async ({ path }, times) => {
    if (/\/(log\?|events$)/.test(path)) return Response.json({ size: 1_000_000 });
    if (path.includes(first.execution.execution_id)) {
      if (times === 1) return buildProblem(503, "unavailable");
      await stored.promise;
    }
    if (path !== "/api/runners/claim") return Response.json({});
    if (times > 2) await stored.promise;
    return Response.json({ ...TIMES, run: [first, second][times - 1] ?? null });
  });
  const loop = buildLoop(service, root);
  const running = loop.run();
  try {
    await waitUntil(
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
  // The runner keeps no files of reported runs.
  for (const { execution: { execution_id: id } } of [first, second]) {
    await expect(Deno.lstat(getLogPath(buildDataPaths(root), id))).rejects.toThrow(Deno.errors.NotFound);
    expect([...Deno.readDirSync(dirname(getLogPath(buildDataPaths(root), id)))]).toEqual([]);
  }
  expect([...Deno.readDirSync(`${root}/open`)]).toEqual([]);
});

it("a run whose order arrives shortly before the end of its lease does not start (contract 18.7) [RUN-1]", async () => {
  await using folder = await createTempDir();
  const root = folder.path;
  const { loop, service, end } = serviceWith(buildWireOrder(root), { lease_ms: 26_000 }, root);
  await using _ended = { [Symbol.asyncDispose]: end };
  await waitUntil("the end is reported", () => service.of("/end").length === 1 && loop.running === 0);
  const report = JSON.parse(service.of("/end")[0]?.text ?? "");
  expect([report.interruption, report.outcome.status, report.ran_ms]).toEqual(["lost", "failed", null]);
});

it("beats have the interval of the service, from the first run on (contract 18.6)", async () => {
  await using folder = await createTempDir();
  const root = folder.path;
  const began = performance.now();
  const { service, end } = serviceWith(buildWireOrder(root), { beat_ms: 50 }, root);
  await using _ended = { [Symbol.asyncDispose]: end };
  await waitUntil("it beats", () => service.of("/beat").length >= 2);
  expect(performance.now() - began).toBeLessThan(9_000);
});

it("a stop ends although the service does not answer (contract 18.2) [RUN-1]", async () => {
  await using folder = await createTempDir();
  const root = folder.path;
  const order = buildWireOrder(root);
  const { promise: silence, resolve: answer } = Promise.withResolvers<void>();
  await using service = new FakeService(async ({ path }, times) => {
    if (/\/(log\?|events$)/.test(path)) return Response.json({ size: 1_000_000 });
    if (path !== "/api/runners/claim" || times > 1) await silence;
    return Response.json({ ...TIMES, beat_ms: 1_000, run: order });
  });
  // A hundred times as fast.
  const clock = {
    ...systemClock,
    after: (ms: number, call: () => void) => systemClock.after(ms / 100, call),
  };
  const loop = buildLoop(service, root, clock);
  const running = loop.run();
  try {
    await waitUntil("it reports the end", () => service.of("/end").length > 0);
    const stopped = Promise.all([loop.stop(0, new AbortController().signal), running]).then(() => "stopped");
    const late = new Promise((resolve) => setTimeout(resolve, 10_000, "late"));
    expect(await Promise.race([stopped, late])).toBe("stopped");
  } finally {
    answer();
  }
});

it("a run from a claim during the stop returns to the queue (contract 18.2) [SHD-2]", async () => {
  await using folder = await createTempDir();
  const root = folder.path;
  const order = buildWireOrder(root);
  const { promise: cut, resolve: answer } = Promise.withResolvers<void>();
  await using service = new FakeService(async ({ path }, times) => {
    if (/\/(log\?|events$)/.test(path)) return Response.json({ size: 1_000_000 });
    if (path !== "/api/runners/claim") return Response.json({});
    // The answer to the first claim does not arrive.
    if (times === 1) await cut;
    return Response.json({ ...TIMES, run: times === 2 ? order : null });
  });
  const loop = buildLoop(service, root);
  const running = loop.run();
  try {
    await waitUntil("it claims", () => service.of("/claim").length === 1);
    await loop.stop(60_000, new AbortController().signal);
    await running;
  } finally {
    answer();
  }
  const claims = service.of("/claim").map(({ text }) => JSON.parse(text));
  expect(claims[1]).toEqual({ ...claims[0], wait_ms: 0 });
  expect(service.of("/end").map(({ text }) => JSON.parse(text).interruption)).toEqual(["shutdown"]);
});

/** A runner, and a service with one run for it. The service accepts the run's end only after a beat, or when none will come. */
function serviceWith(order: WireOrder, change: Partial<typeof TIMES>, root: string) {
  const over = Promise.withResolvers<void>();
  const service = new FakeService(async ({ path }, times) => {
    if (/\/(log\?|events$)/.test(path)) return Response.json({ size: 1_000_000 });
    if (path.endsWith("/beat")) {
      return Response.json({ runs: [{ id: order.execution.execution_id, stop: "", waited_ms: 0 }] });
    }
    if (path.endsWith("/end") && change.beat_ms !== undefined && service.of("/beat").length < 2) {
      return buildProblem(503, "unavailable");
    }
    if (path !== "/api/runners/claim") return Response.json({});
    if (times > 1) await over.promise;
    return Response.json({ ...TIMES, ...change, run: times === 1 ? order : null });
  });
  const loop = buildLoop(service, root);
  const running = loop.run();
  const end = async () => {
    over.resolve();
    await loop.stop(0, new AbortController().signal);
    await running;
    await service[Symbol.asyncDispose]();
  };
  return { loop, service, end };
}
