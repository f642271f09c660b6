import { join } from "node:path";
import { findOwnProgram, installShim } from "../src/boot/shim.ts";
import type { Box } from "../src/engine/process/box.ts";
import { BoxEtc } from "../src/engine/process/box_etc.ts";
import { findBoxFault } from "../src/engine/process/box_fault.ts";
import { findBoxUser } from "../src/engine/process/box_user.ts";
import { detectIsolation } from "../src/engine/process/isolation.ts";
import { type ProcessSpec, runProcess } from "../src/engine/process/process.ts";
import { getInputDir, makeRunDir } from "../src/engine/run_dir.ts";
import { openRunSocket } from "../src/http/server/run_socket.ts";
import { computeMedian, computePercentile, pause, type Row } from "./measure.ts";
import { BenchService } from "./service.ts";

const STARTS = 50;
// The pool makes its next namespace between two starts.
const PAUSE_MS = 150;
const USER = Deno.uid() === 0 ? "nobody" : "";
const PORT = 8_080;

/** Measures how long a program takes to start in a namespace and in boxes, in turns: alone, and as a run of the service. */
export async function benchBox(): Promise<Row[]> {
  const fault = await findBoxFault({ box: { user: USER } });
  if (fault !== null) {
    console.error(`no boxes here: ${fault}`);
    return [];
  }
  return [...await measurePrograms(), ...await measureRuns()];
}

async function measurePrograms(): Promise<Row[]> {
  const folder = await Deno.makeTempDir({ prefix: "svc-bench-box-" });
  const kinds = await makeKinds(folder);
  const times = kinds.map((): number[] => []);
  for (let i = 0; i < STARTS; i++) {
    for (const [at, { box }] of kinds.entries()) {
      times[at]?.push(await measureStart(join(folder, "work"), box));
    }
  }
  await Deno.remove(folder, { recursive: true });
  return kinds.slice(1).map(({ network, more }, at) => {
    const row = compare(
      `start of a program in a box, network ${network}`,
      times[at + 1] ?? [],
      times[0] ?? [],
    );
    const met = row.value - (row.bare ?? NaN) <= more;
    return { ...row, goal: `at most ${more} ms more`, met };
  });
}

/** Measures from the request for a task to the first line of its program. */
async function measureRuns(): Promise<Row[]> {
  const script = "echo $EPOCHREALTIME > at";
  await using service = await BenchService.start({}, {
    engines: { default: "stamp", stamp: { kind: "command", command: "bash", args: ["-c", script] } },
    isolation: { box: { user: USER } },
  });
  const isolations = ["namespace", { box: { network: "host" } }, { box: { network: "none" } }];
  const workers = [];
  for (const [at, isolation] of isolations.entries()) {
    workers.push(await service.call("POST /api/workers", { name: `W${at}`, isolation }));
  }
  const times = isolations.map((): number[] => []);
  for (let i = 0; i < STARTS; i++) {
    for (const [index, { id: worker_id, work_dir }] of workers.entries()) {
      await pause(PAUSE_MS);
      const at = performance.timeOrigin + performance.now();
      const body = { message_id: "bench", worker_id, instruction: "x", type: "immediate" };
      const { id } = await service.call("POST /api/tasks", body);
      await service.call(`GET /api/tasks/${id}/wait?timeout_ms=60000`);
      times[index]?.push(Number(await Deno.readTextFile(join(work_dir, "at"))) * 1e3 - at);
    }
  }
  return ["host", "none"].map((network, at) =>
    compare(
      `task created -> program started in a box, network ${network}`,
      times[at + 1] ?? [],
      times[0] ?? [],
    )
  );
}

function compare(what: string, boxed: number[], namespace: number[]): Row {
  const [value, bare] = [computeMedian(boxed), computeMedian(namespace)];
  const says = `${(value - bare).toFixed(1)} ms more, p99 ${computePercentile(boxed, 99).toFixed(0)} ms`;
  return { what: `${what} (p50 of ${STARTS})`, value, unit: "ms", bare, beside: "in a namespace", says };
}

/** A namespace, and boxes with the ms that they may take more. */
async function makeKinds(folder: string): Promise<{ box: Box | null; network: string; more: number }[]> {
  const place = (name: string) => join(folder, name);
  const user = USER === "" ? null : await findBoxUser(USER);
  for (const name of ["work", "home"]) {
    await Deno.mkdir(place(name));
    if (user !== null) await Deno.chown(place(name), user.uid, user.gid);
  }
  makeRunDir(place("run"));
  new BoxEtc(place("etc")).refresh();
  await installShim(place("bin"));
  const relay = join(place("bin"), "svc");
  // From source, Deno compiles each module on its first start outside a box.
  await new Deno.Command(relay, { args: ["version"], stdout: "null" }).output();
  const program = findOwnProgram();
  const host: Box = {
    ...{
      workDir: place("work"),
      stateDir: null,
      runDir: place("run"),
      home: place("home"),
      etc: place("etc"),
      user,
    },
    ...{
      read: [...program.read, place("bin")],
      messageFiles: [],
      readOnly: [],
      write: [],
      links: program.links,
    },
    ...{ fixed: [getInputDir(place("run"))], hidden: [], limits: {}, total: {}, network: "host" },
  };
  const handle = () => Promise.resolve(new Response());
  const open = (request: Parameters<typeof openRunSocket>[1]) => openRunSocket({ handle }, request);
  return [
    { box: null, network: "host", more: 0 },
    { box: host, network: "host", more: 10 },
    { box: { ...host, network: { hosts: [], port: PORT, relay, open } }, network: "none", more: 60 },
  ];
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
