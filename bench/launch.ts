import { join } from "node:path";
import { createRemoteWorker, createTask, startRunnerOnce } from "../test/harness/service/runner.ts";
import { SVC } from "../test/harness/service/process.ts";
import { computeMedian, type Row } from "./measure.ts";
import { BenchService } from "./service.ts";

const TIMES = 15;
const WARM = 3;
const EXECUTABLE = new URL("../dist/svc", import.meta.url).pathname;
const ENGINES = { default: "sh", sh: { kind: "command", command: "/bin/sh" } };

/** Measures `svc runner --once` from its start to the first line of its log at the service, next to a start of the same program. */
export async function benchLaunch(): Promise<Row[]> {
  const hasExecutable = await Deno.stat(EXECUTABLE).then(() => true, () => false);
  const rows = [await measure("from source", SVC)];
  return hasExecutable ? [await measure("executable", [EXECUTABLE]), ...rows] : rows;
}

async function measure(name: string, program: readonly string[]): Promise<Row> {
  await using service = await BenchService.start({}, { engines: ENGINES });
  const worker = await createRemoteWorker(service, "sh", { home: "none" });
  const launches: number[] = [];
  const versions: number[] = [];
  for (let n = -WARM; n < TIMES; n++) {
    const version = await measureVersion(program);
    const launch = await measureLaunch(service, worker, { program, name: `once${n}` });
    if (n < 0) continue;
    versions.push(version);
    launches.push(launch);
  }
  const [value, bare] = [computeMedian(launches), computeMedian(versions)];
  return {
    what: `svc runner --once: start to the first line of the log at the service, ${name} (p50)`,
    ...{ value, unit: "ms", bare, beside: "svc version" },
    says: `${(value / bare).toFixed(1)}x`,
    max: 150,
  };
}

async function measureLaunch(
  service: BenchService,
  worker: string,
  { program, name }: { program: readonly string[]; name: string },
): Promise<number> {
  const folder = await Deno.makeTempDir({ prefix: "svc-bench-" });
  // As the token of a launch, it is good for one process.
  const { token } = await service.call("POST /api/runners", { name, labels: ["x"] });
  const task = await createTask(service, worker, "echo done");
  const config = `engines: ${JSON.stringify(ENGINES)}\n`;
  const started = performance.now();
  const runner = await startRunnerOnce({ folder, token, url: service.url, config, program });
  const ms = await waitForLine(service, task) - started;
  const code = await runner.wait();
  if (code !== 0) throw new Error(`svc runner --once exits with ${code}: ${runner.stderr}`);
  await service.call(`DELETE /api/runners/${name}`);
  await Deno.remove(join(folder), { recursive: true });
  return ms;
}

async function waitForLine(service: BenchService, task: string): Promise<number> {
  for (;;) {
    const { execution_id } = await service.call(`GET /api/tasks/${task}`);
    if (!execution_id) continue;
    const log = await service.text(`/api/executions/${execution_id}/logs`).catch(() => "");
    if (log !== "") return performance.now();
  }
}

async function measureVersion([program = "", ...args]: readonly string[]): Promise<number> {
  const started = performance.now();
  await new Deno.Command(program, { args: [...args, "version"], stdin: "null" }).output();
  return performance.now() - started;
}
