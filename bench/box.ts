import { join } from "node:path";
import { findBoxFault } from "../src/engine/process/box_fault.ts";
import { findBoxUser } from "../src/engine/process/box_user.ts";
import { detectIsolation } from "../src/engine/process/isolation.ts";
import { type ProcessSpec, runProcess } from "../src/engine/process/process.ts";
import { computeMedian, computePercentile, pause, type Row } from "./measure.ts";

const STARTS = 50;
// The pool makes its next namespace between two starts.
const PAUSE_MS = 150;
const USER = Deno.uid() === 0 ? "nobody" : "";

/** Measures how long a program takes to start in a namespace and in a box, in turns. */
export async function benchBox(): Promise<Row[]> {
  if (await findBoxFault({ box: { user: USER } }) !== null) return [];
  const folder = await Deno.makeTempDir({ prefix: "svc-bench-box-" });
  const place = (name: string) => join(folder, name);
  const user = USER === "" ? null : await findBoxUser(USER);
  for (const name of ["work", "run/tmp", "home"]) await Deno.mkdir(place(name), { recursive: true });
  if (user !== null) {
    for (const name of ["work", "home"]) {
      await Deno.chown(place(name), user.uid, user.gid);
    }
  }
  const box = {
    ...{ workDir: place("work"), stateDir: null, runDir: place("run"), home: place("home"), user },
    ...{
      read: [],
      messageFiles: [],
      write: [],
      links: [],
      fixed: [],
      hidden: [],
      readOnly: [],
      limits: {},
      total: {},
      network: "host" as const,
    },
  };
  const times: Record<"namespace" | "box", number[]> = { namespace: [], box: [] };
  for (let i = 0; i < STARTS; i++) {
    times.namespace.push(await measureStart(place("work"), null));
    times.box.push(await measureStart(place("work"), box));
  }
  await Deno.remove(folder, { recursive: true });
  const says = (all: number[]) => `p99 ${computePercentile(all, 99).toFixed(0)} ms`;
  const [namespace, boxed] = [computeMedian(times.namespace), computeMedian(times.box)];
  return [{
    what: `start of a program in a box, ${STARTS} times (p50)`,
    value: boxed,
    unit: "ms",
    bare: namespace,
    beside: "in a namespace",
    says: says(times.box),
    max: namespace + 10,
  }];
}

/** Returns the ms until the program itself writes the time. */
async function measureStart(cwd: string, box: ProcessSpec["box"]): Promise<number> {
  await pause(PAUSE_MS);
  let out = "";
  const at = performance.timeOrigin + performance.now();
  await runProcess({
    ...{ runId: crypto.randomUUID(), command: "/bin/bash", args: ["-c", "echo $EPOCHREALTIME"], cwd, box },
    ...{ env: { PATH: "/usr/bin:/bin" }, stdin: "", isolation: await detectIsolation(), umask: 0o022 },
    stopGraceMs: 1_000,
    signal: new AbortController().signal,
    onOutput: (_stream, chunk) => out += new TextDecoder().decode(chunk),
  });
  return Number(out) * 1e3 - at;
}
