import { run } from "../../cli/ctl.ts";
import { BrokenPipe, type Io } from "../../cli/terminal/io.ts";
import type { App } from "./service/app.ts";

/** How `svc ctl` is called: on a terminal or in a pipe, and with which environment. */
interface CallOptions {
  terminal?: boolean;
  env?: Record<string, string>;
  stdin?: string | ReadableStream<Uint8Array>;
  width?: number;
  cwd?: string;
  signal?: AbortSignal;
  /** Called with each piece of stdout. */
  onOut?: (text: string) => void;
  /** The reader of stdout has closed it. */
  closedPipe?: boolean;
}

export interface CallResult {
  code: number;
  out: string;
  err: string;
}

/** Splits a command line at blanks; single quotes keep a word together. */
export function splitWords(line: string): string[] {
  return [...line.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, bare]) => quoted ?? bare ?? "");
}

/** Runs `svc ctl` in this process against a test's service. */
export async function ctl(
  app: App | null,
  args: string | string[],
  options: CallOptions = {},
): Promise<CallResult> {
  const { terminal = false, env = {}, stdin = "", width = 200, cwd = "/tmp" } = options;
  const said = { out: "", err: "" };
  const io: Io = {
    out: (text) => {
      if (options.closedPipe) throw new BrokenPipe();
      said.out += text;
      options.onOut?.(text);
    },
    err: (text) => said.err += text,
    stdin: typeof stdin === "string" ? new Blob([stdin]).stream() : stdin,
    hideInput: (hidden) => said.err += hidden ? "[hidden]" : "[shown]",
    rawInput: () => {},
    outIsTerminal: terminal,
    errIsTerminal: terminal,
    inIsTerminal: terminal,
    width,
    env: app === null ? { ...env } : {
      SVC_DATA_DIR: app.dataDir,
      SVC_SERVER__PORT: "0",
      XDG_CONFIG_HOME: `${app.dataDir}/config`,
      ...env,
    },
    cwd,
    signal: options.signal ?? new AbortController().signal,
  };
  const code = await run(typeof args === "string" ? splitWords(args) : args, io);
  return { code, ...said };
}
