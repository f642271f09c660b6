import { startServer, svc } from "../test/harness/service/process.ts";
import { computeMedian, measureRuns, type Row, runBareProgram } from "./measure.ts";
import { BenchService } from "./service.ts";

const TIMES = 15;
const WARM = 3;
const EXECUTABLE = new URL("../dist/svc", import.meta.url).pathname;

/** Measures the first and later starts of `serve`, of `ctl` against an empty program, and memory after the start. */
export async function benchStart(): Promise<Row[]> {
  const folder = await Deno.makeTempDir({ prefix: "svc-bench-" });
  const empty = computeMedian(await measureRuns(TIMES, WARM, runBareProgram));
  const firsts: number[] = [];
  for (let i = 0; i < TIMES; i++) {
    const fresh = await Deno.makeTempDir({ prefix: "svc-bench-" });
    const started = performance.now();
    const server = await startServer({ dataDir: fresh });
    firsts.push(performance.now() - started);
    await server.end("SIGTERM");
    await Deno.remove(fresh, { recursive: true });
  }
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
  const compiled = await compareCompiled(folder);
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
      what: "svc serve: first start, on an empty directory",
      value: computeMedian(firsts),
      unit: "ms",
      bare: empty,
      beside: "empty program",
      max: 500,
    },
    ...compiled,
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
      max: 100,
    },
  ];
}

/** Measures `ctl` of the executable. Baseline: an executable of an empty program. Both run alternately. */
async function compareCompiled(dataDir: string): Promise<Row[]> {
  if (!await Deno.stat(EXECUTABLE).then((info) => info.isFile, () => false)) {
    console.error("left out: dist/svc is missing; make build");
    return [];
  }
  const folder = await Deno.makeTempDir({ prefix: "svc-bench-" });
  const [program, source] = [`${folder}/empty`, `${folder}/empty.js`];
  await Deno.writeTextFile(source, "export {};\n");
  const { success, stderr } = await new Deno.Command(Deno.env.get("DENO_FOR_COMPILE") ?? Deno.execPath(), {
    args: ["compile", "-A", "--quiet", "--no-check", "--no-config", "--no-code-cache", "-o", program, source],
  }).output();
  if (!success) throw new Error(new TextDecoder().decode(stderr));
  const run = async (command: string, args: string[]) => {
    const { code } = await new Deno.Command(command, { args, env: { SVC_DATA_DIR: dataDir }, cwd: dataDir })
      .output();
    if (code !== 0) throw new Error(`${command} ${args.join(" ")} ended with ${code}`);
  };
  const [ours, theirs]: [number[], number[]] = [[], []];
  for (let i = 0; i < TIMES; i++) {
    ours.push(...await measureRuns(1, 1, () => run(EXECUTABLE, ["ctl", "worker", "list"])));
    theirs.push(...await measureRuns(1, 1, () => run(program, [])));
  }
  await Deno.remove(folder, { recursive: true });
  const [value, bare] = [computeMedian(ours), computeMedian(theirs)];
  return [{
    what: "svc ctl worker list, compiled",
    ...{ value, bare, unit: "ms", beside: "empty executable", says: `${(value / bare).toFixed(2)}x` },
    ...{ goal: "at most 1.7x", met: value / bare <= 1.7 },
  }];
}
