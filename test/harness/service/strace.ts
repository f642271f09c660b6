import { SVC } from "./process.ts";

/** Whether strace is there and may be used. A test that looks at the calls of the system is left out without it. */
export const TRACES = await new Deno.Command("strace", { args: ["-e", "trace=none", "true"], stderr: "null" })
  .output().then(({ success }) => success, () => false);

/** The command that runs `svc` and writes these calls of all its threads and children to `file`. */
export function traced(file: string, calls: readonly string[]): string[] {
  // -y names the file of each descriptor; -s shows a whole page of the database.
  return ["strace", "-f", "-qq", "-y", "-s", "5000", "-e", `trace=${calls.join(",")}`, "-o", file, ...SVC];
}

/** One call of the system. */
export interface Call {
  name: string;
  /** Its arguments, as strace writes them. */
  args: string;
  /** The lines at which it began and returned. */
  began: number;
  ended: number;
}

/** The calls in a file of strace, in the order in which they began. */
export async function callsIn(file: string): Promise<Call[]> {
  const calls: Call[] = [];
  const open = new Map<string, Call>();
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
