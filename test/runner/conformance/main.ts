// Checks a runner against docs/reference/runner-protocol.md: deno run -A test/runner/conformance/main.ts [--case WORD] -- COMMAND ...
import { runCases } from "./bench.ts";
import { CASES } from "./cases.ts";
import { ONCE_CASES } from "./once_cases.ts";

const USAGE =
  "Usage: deno run -A test/runner/conformance/main.ts [--once] [--case <words>] -- <command of a runner>";
const JOBS = 6;

const split = Deno.args.indexOf("--");
const command = split === -1 ? [] : Deno.args.slice(split + 1);
const flags = split === -1 ? Deno.args : Deno.args.slice(0, split);
const isOnce = flags[0] === "--once";
const [flag, words = "", ...rest] = isOnce ? flags.slice(1) : flags;
if (command.length === 0 || rest.length > 0 || (flag !== undefined && (flag !== "--case" || words === ""))) {
  console.error(USAGE);
  Deno.exit(2);
}
const cases = (isOnce ? ONCE_CASES : CASES).filter(({ name }) => name.includes(words));
if (cases.length === 0) {
  console.error(`Cannot run a case: none contains ${JSON.stringify(words)}`);
  Deno.exit(2);
}
const ending = new AbortController();
for (const [name, number] of [["SIGINT", 2], ["SIGTERM", 15]] as const) {
  Deno.addSignalListener(name, () => ending.abort(128 + number));
}
const { signal } = ending;
const failed = await runCases(cases, { command, signal }, { jobs: JOBS, print: console.log });
Deno.exit(signal.aborted ? signal.reason : failed === 0 ? 0 : 1);
