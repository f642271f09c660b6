import { PASS_HASH } from "../service/client.ts";

export const FAKE_AGENT = new URL("./fake_agent.sh", import.meta.url).pathname;

/** Builds the engines of tests. `fake` takes its mode from the instruction. */
export function buildFakeEngines(
  options: { ledger?: string; env?: Record<string, string>; timeout?: string; idle_timeout?: string } = {},
): Record<string, unknown> {
  const { ledger, env = {}, ...limits } = options;
  return {
    default: "fake",
    fake: {
      kind: "command",
      command: FAKE_AGENT,
      env: { ...env, ...(ledger === undefined ? {} : { FAKE_LEDGER: ledger }) },
      ...limits,
    },
  };
}

/** Returns an engine that ignores its prompt and runs a shell script. */
export function buildShellEngine(script: string) {
  return { kind: "command", command: "sh", args: ["-c", `cat >/dev/null; ${script}`] };
}

/** Returns buildFakeEngines() as the environment of a server process. The operator's password is `pass`. */
export function buildFakeEnvironment(ledger?: string): Record<string, string> {
  return {
    SVC_AUTH__PASSWORD_HASH: PASS_HASH,
    SVC_ENGINES__DEFAULT: "fake",
    SVC_ENGINES__FAKE__KIND: "command",
    SVC_ENGINES__FAKE__COMMAND: FAKE_AGENT,
    ...(ledger === undefined ? {} : { SVC_ENGINES__FAKE__ENV__FAKE_LEDGER: ledger }),
  };
}

interface LedgerLine {
  word: string;
  task: string;
  attempt: number;
  execution: string;
  /** Unix ms. */
  at: number;
}

export async function readLedger(path: string): Promise<LedgerLine[]> {
  const text = await Deno.readTextFile(path).catch(() => "");
  return text.split("\n").filter((line) => line !== "").map((line) => {
    const [word = "", task = "", attempt = "0", , at = "0", execution = ""] = line.split(" ");
    return { word, task, attempt: Number(attempt), execution, at: Number(at) / 1e6 };
  });
}

/** Returns the largest number of runs at the same time. */
export function countMostConcurrent(lines: LedgerLine[]): number {
  let now = 0;
  let most = 0;
  for (const { word } of [...lines].sort((a, b) => a.at - b.at || (a.word === "end" ? -1 : 1))) {
    now += word === "start" ? 1 : word === "end" ? -1 : 0;
    most = Math.max(most, now);
  }
  return most;
}
