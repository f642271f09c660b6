/** The streams and environment of a command. A test passes its own. */
export interface Io {
  /** Writes to stdout. Throws BrokenPipe after the reader has closed it. */
  out: (text: string) => void;
  err: (text: string) => void;
  stdin: ReadableStream<Uint8Array>;
  /** Hides or shows typed characters. */
  hideInput: (hidden: boolean) => void;
  /** Turns raw input on or off. In raw input each key arrives immediately, including Ctrl-C, and is not shown. */
  rawInput: (raw: boolean) => void;
  outIsTerminal: boolean;
  errIsTerminal: boolean;
  inIsTerminal: boolean;
  width: number;
  env: Record<string, string>;
  cwd: string;
  /** Aborts at SIGINT. */
  signal: AbortSignal;
}

/** The reader of stdout has closed the pipe. The command ends without an error. */
export class BrokenPipe extends Error {
  constructor() {
    super("broken pipe");
    this.name = "BrokenPipe";
  }
}

const encoder = new TextEncoder();

function createWriter(stream: { writeSync(bytes: Uint8Array): number }): (text: string) => void {
  return (text) => {
    const bytes = encoder.encode(text);
    try {
      for (let at = 0; at < bytes.length;) at += stream.writeSync(bytes.subarray(at));
    } catch (error) {
      if (error instanceof Deno.errors.BrokenPipe) throw new BrokenPipe();
      throw error;
    }
  };
}

/** Opens the streams of the process. */
export function openProcessIo(signal: AbortSignal): Io {
  const outIsTerminal = Deno.stdout.isTerminal();
  return {
    out: createWriter(Deno.stdout),
    err: (text) => {
      try {
        createWriter(Deno.stderr)(text);
      } catch {
        // A closed stderr cannot show the error.
      }
    },
    get stdin() {
      return Deno.stdin.readable;
    },
    // With cbreak, Ctrl-C still sends SIGINT. The reader of the line handles Enter.
    hideInput: (hidden) => Deno.stdin.setRaw(hidden, { cbreak: true }),
    rawInput: (raw) => Deno.stdin.setRaw(raw),
    outIsTerminal,
    errIsTerminal: Deno.stderr.isTerminal(),
    inIsTerminal: Deno.stdin.isTerminal(),
    width: outIsTerminal || Deno.stderr.isTerminal() ? readConsoleWidth() : 0,
    env: Deno.env.toObject(),
    cwd: Deno.cwd(),
    signal,
  };
}

function readConsoleWidth(): number {
  try {
    return Deno.consoleSize().columns;
  } catch {
    return 80;
  }
}
