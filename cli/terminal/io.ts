/** What a command talks to. Handed in, so that a test can be the terminal. */
export interface Io {
  /** Writes to stdout. Throws BrokenPipe when nobody reads any more. */
  out: (text: string) => void;
  err: (text: string) => void;
  stdin: ReadableStream<Uint8Array>;
  /** Stops a terminal from showing what is typed, and lets it again. */
  hideInput: (hidden: boolean) => void;
  /** Hands every key over as it is pressed, Ctrl-C included, and unseen; or line by line again. */
  rawInput: (raw: boolean) => void;
  /** Whether stdout, stderr and stdin are terminals. */
  outIsTerminal: boolean;
  errIsTerminal: boolean;
  inIsTerminal: boolean;
  /** Columns of the terminal. */
  width: number;
  env: Record<string, string>;
  cwd: string;
  /** Aborts at SIGINT. */
  signal: AbortSignal;
}

/** The reader of our output has closed it: not an error, only the end. */
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

/** The process's own streams. */
export function openProcessIo(signal: AbortSignal): Io {
  const outIsTerminal = Deno.stdout.isTerminal();
  return {
    out: createWriter(Deno.stdout),
    err: (text) => {
      try {
        createWriter(Deno.stderr)(text);
      } catch {
        // Nobody listens; there is no other place to say so.
      }
    },
    get stdin() {
      return Deno.stdin.readable;
    },
    // Line by line and with Ctrl-C as ever, only unseen: the reader takes care of Enter and of nothing else.
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
