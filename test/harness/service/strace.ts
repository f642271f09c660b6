import { SVC } from "./process.ts";

/** Whether strace exists and is allowed. Tests of system calls are skipped without it. */
export const CAN_TRACE = await new Deno.Command("strace", {
  args: ["-e", "trace=none", "true"],
  stderr: "null",
})
  .output().then(({ success }) => success, () => false);

/** Builds the command that runs `svc` and writes these calls of all its threads and children to `file`. */
export function buildTraceCommand(file: string, calls: readonly string[]): string[] {
  // -y names the file of each descriptor; -s shows a whole page of the database.
  return ["strace", "-f", "-qq", "-y", "-s", "5000", "-e", `trace=${calls.join(",")}`, "-o", file, ...SVC];
}

export interface SystemCall {
  name: string;
  /** Arguments, as strace writes them. */
  args: string;
  /** The lines of its start and its return. */
  began: number;
  ended: number;
}

/** Reads the calls in a file of strace, in the order of their starts. */
export async function readSystemCalls(file: string): Promise<SystemCall[]> {
  const calls: SystemCall[] = [];
  const open = new Map<string, SystemCall>();
  for (const [at, line] of (await Deno.readTextFile(file)).split("\n").entries()) {
    const [, thread = "", rest = ""] = /^(\d+) +(.*)$/.exec(line) ?? [];
    const resumed = /^<\.\.\. \w+ resumed>(.*)/.exec(rest);
    if (resumed !== null) {
      const call = open.get(thread);
      if (call !== undefined) Object.assign(call, { ended: at, args: call.args + resumed[1] });
      open.delete(thread);
      continue;
    }
    const [, name = "", args = ""] = /^(\w+)\((.*)$/.exec(rest) ?? [];
    if (name === "") continue;
    const unfinished = args.endsWith("<unfinished ...>");
    const call = { name, args, began: at, ended: unfinished ? Infinity : at };
    calls.push(call);
    if (unfinished) open.set(thread, call);
  }
  return calls;
}
