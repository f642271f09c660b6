import { join } from "node:path";
import { startServer, svc } from "../test/harness/process.ts";
import { filled } from "./lists.ts";
import { median, type Row, timed } from "./measure.ts";

const TIMES = 25;
const WARM = 3;
const SIZE_MAX_MB = 110;
// Times of an empty program.
const VERSION_MAX = 1.6;
const LIST_MAX = 1.7;
const MEMORY_MAX_MB = 90;
const ROWS = 1_000_000;
const STARTS = 5;
const READY_MAX_MS = 300;
const SETTLE_MS = 3_000;

/**
 * The executable that `make build` left in dist/ (or SVC_PROGRAM): its size, its starts beside the same base with an empty
 * program, the memory of an idle `serve`, and its start with a million rows. Needs what `make build` needs.
 */
export async function benchOneFile(): Promise<Row[]> {
  const path = Deno.env.get("SVC_PROGRAM") ?? new URL("../dist/svc", import.meta.url).pathname;
  const size = await Deno.stat(path).then(({ size }) => size, () => null);
  if (size === null) {
    console.error("left out: there is no dist/svc; make build");
    return [];
  }
  const program = [path];
  const folder = await Deno.makeTempDir({ prefix: "svc-bench-" });
  try {
    const base = await emptyProgram(folder);
    if (base === null) {
      console.error("left out: no base for an empty program is to be had here; name one in DENORT_BIN");
      return [];
    }
    const dataDir = join(folder, "data");
    await Deno.mkdir(dataDir);
    await using server = await startServer({ dataDir, program });
    const call = (...args: string[]) => async () => void await svc(args, { dataDir, program });
    // In turns, so that other load on the machine affects all three alike.
    const [empty, version, list]: [number[], number[], number[]] = [[], [], []];
    await timed(TIMES, WARM, async (index) => {
      const took = [
        await timed(1, 0, () => run(base)),
        await timed(1, 0, call("version")),
        await timed(1, 0, call("ctl", "worker", "list")),
      ];
      if (index >= 0) [empty, version, list].forEach((all, at) => all.push(took[at]?.[0] ?? NaN));
    });
    await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
    const status = await Deno.readTextFile(`/proc/${server.child.pid}/status`);
    const memory = Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1] ?? NaN) / 1024;
    const bare = median(empty);
    const baseSize = (await Deno.stat(base)).size;
    return [
      {
        what: "one file: size",
        value: size / 1e6,
        unit: "MB",
        bare: baseSize / 1e6,
        beside: "base with an empty program",
        says: `+${((size - baseSize) / 1e6).toFixed(1)} MB`,
        goal: `at most ${SIZE_MAX_MB} MB`,
        met: size / 1e6 <= SIZE_MAX_MB,
      },
      start("one file: svc version", { value: median(version), bare, max: VERSION_MAX }),
      start("one file: svc ctl worker list", { value: median(list), bare, max: LIST_MAX }),
      {
        what: "one file: memory of serve at rest",
        value: memory,
        unit: "MB",
        says: "",
        goal: `at most ${MEMORY_MAX_MB} MB`,
        met: memory <= MEMORY_MAX_MB,
      },
      await startWithRows(program),
    ];
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

/** From the start of the process until it is ready, with a million executions and as many messages. */
async function startWithRows(program: string[]): Promise<Row> {
  await using service = await filled(ROWS, program);
  const starts: number[] = [];
  for (let i = 0; i < STARTS; i++) starts.push(await service.restartWith(() => Promise.resolve()));
  const ready = median(starts);
  return {
    what: "one file: start to ready with a million executions",
    value: ready,
    unit: "ms",
    says: `at most ${Math.max(...starts).toFixed(0)} ms of ${STARTS}`,
    goal: `at most ${READY_MAX_MS} ms`,
    met: ready <= READY_MAX_MS,
  };
}

function start(what: string, { value, bare, max }: Record<"value" | "bare" | "max", number>): Row {
  const times = value / bare;
  return {
    what,
    value,
    unit: "ms",
    bare,
    beside: "base with an empty program",
    says: `${times.toFixed(2)}x`,
    goal: `at most ${max}x`,
    met: times <= max,
  };
}

async function emptyProgram(folder: string): Promise<string | null> {
  const [source, output] = [join(folder, "empty.js"), join(folder, "empty")];
  await Deno.writeTextFile(source, "");
  const { success } = await new Deno.Command(Deno.env.get("DENO_FOR_COMPILE") ?? Deno.execPath(), {
    args: [
      "compile",
      "-A",
      "--quiet",
      "--no-check",
      "--no-config",
      "--no-code-cache",
      "--output",
      output,
      source,
    ],
  }).output();
  return success ? output : null;
}

async function run(program: string): Promise<void> {
  await new Deno.Command(program, { stdout: "piped", stderr: "piped", stdin: "null" }).output();
}
