import { ConfigError } from "../config/file.ts";
import { armFaults, FAULT_POINTS, type FaultPoint } from "../base/fault_point.ts";

interface Fault {
  point: FaultPoint;
  /** The pass of the point that triggers the fault, from 1. */
  at: number;
  action: "kill" | "throw" | "sleep";
  ms: number;
}

const FORM = /^([a-z.-]+):(\d{1,6}):(kill|throw|sleep:(\d{1,6}))$/;

/**
 * Arms the faults of SVC_FAULT, `<point>:<n>:<kill|throw|sleep:ms>`, separated by commas. Each fault triggers once, at the n-th pass of its
 * point, and writes a line to stderr first for tests. `sleep` blocks the whole process. Throws ConfigError for an invalid plan.
 */
export function armPlan(text: string): void {
  const faults = text.split(",").map(parse);
  const passes = new Map<FaultPoint, number>();
  armFaults((point) => {
    const count = (passes.get(point) ?? 0) + 1;
    passes.set(point, count);
    const fault = faults.find((one) => one.point === point && one.at === count);
    if (fault !== undefined) trigger(fault);
  });
}

function parse(text: string): Fault {
  const [, point, at, action = "", ms = "0"] = FORM.exec(text) ?? [];
  const known = FAULT_POINTS.find((one) => one === point);
  if (known === undefined || Number(at) < 1) {
    throw new ConfigError(
      `SVC_FAULT: ${JSON.stringify(text)} is not <point>:<n>:<kill|throw|sleep:ms>; points: ${
        FAULT_POINTS.join(", ")
      }`,
    );
  }
  return { point: known, at: Number(at), action: action.split(":")[0] as Fault["action"], ms: Number(ms) };
}

function trigger({ point, at, action, ms }: Fault): void {
  Deno.stderr.writeSync(new TextEncoder().encode(`SVC_FAULT fired: ${point}:${at}:${action}\n`));
  if (action === "kill") {
    Deno.kill(Deno.pid, "SIGKILL");
    // Blocks until the signal arrives.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10_000);
  }
  if (action === "sleep") Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
  if (action === "throw") throw new Error(`SVC_FAULT at ${point}`);
}
