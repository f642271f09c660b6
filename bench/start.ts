import { startServer, svc } from "../test/harness/service/process.ts";
import { computeMedian, measureRuns, type Row, runBareProgram } from "./measure.ts";
import { BenchService } from "./service.ts";

const TIMES = 15;
const WARM = 3;

/** Measures the cold start of `serve` and of `ctl` against an empty program, and memory after the start. */
export async function benchStart(): Promise<Row[]> {
  const folder = await Deno.makeTempDir({ prefix: "svc-bench-" });
  const empty = computeMedian(await measureRuns(TIMES, WARM, runBareProgram));
  const starts: number[] = [];
  for (let i = 0; i < TIMES; i++) {
    const started = performance.now();
    const server = await startServer({ dataDir: folder });
    starts.push(performance.now() - started);
    await server.end("SIGTERM");
  }
  const server = await startServer({ dataDir: folder });
  const ctl = computeMedian(
    await measureRuns(
      TIMES,
      WARM,
      async () => void await svc(["ctl", "worker", "list"], { dataDir: folder }),
    ),
  );
  await server.end("SIGTERM");
  await Deno.remove(folder, { recursive: true });
  await using service = await BenchService.start();
  const memory = await service.memoryMb();
  const ready = computeMedian(starts);
  return [
    {
      what: "svc serve: start to ready",
      value: ready,
      unit: "ms",
      bare: empty,
      beside: "empty program",
      says: `${(ready / empty).toFixed(1)}x`,
      max: 500,
    },
    {
      what: "svc ctl worker list",
      value: ctl,
      unit: "ms",
      bare: empty,
      beside: "empty program",
      says: `${(ctl / empty).toFixed(2)}x`,
      goal: "at most 4x",
      met: ctl / empty <= 4,
    },
    {
      what: "memory of serve after start",
      value: memory,
      unit: "MB",
      max: 120,
    },
  ];
}
