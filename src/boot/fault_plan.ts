import { ConfigError } from "../config/file.ts";
import { armFaults, FAULT_POINTS, type FaultPoint } from "../base/fault_point.ts";

interface Fault {
  point: FaultPoint;
  /** At which pass it happens, from 1. */
  at: number;
  action: "kill" | "throw" | "sleep";
  ms: number;
}

const FORM = /^([a-z.-]+):(\d{1,6}):(kill|throw|sleep:(\d{1,6}))$/;

/**
 * Arms the test fault points of SVC_FAULT, `<point>:<n>:<kill|throw|sleep:ms>`, separated by commas. Each acts once, when the
 * point is passed for the n-th time, and says so on stderr before, so that a test can see it. `sleep` blocks the whole
 * process. Throws ConfigError for anything else.
 */
export function armPlan(text: string): void {
  const faults = text.split(",").map(parse);
  const passages = new Map<FaultPoint, number>();
  armFaults((point) => {
    const count = (passages.get(point) ?? 0) + 1;
    passages.set(point, count);
    const fault = faults.find((one) => one.point === point && one.at === count);
    if (fault !== undefined) happen(fault);
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

function happen({ point, at, action, ms }: Fault): void {
  Deno.stderr.writeSync(new TextEncoder().encode(`SVC_FAULT fired: ${point}:${at}:${action}\n`));
  if (action === "kill") {
    Deno.kill(Deno.pid, "SIGKILL");
    // The signal needs a moment to arrive; nothing may run until then.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10_000);
  }
  if (action === "sleep") Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
  if (action === "throw") throw new Error(`SVC_FAULT at ${point}`);
}
