/** A use of a tool or of a gateway by a run. */
export interface RunCall {
  kind: "tool" | "gateway";
  /** The name of the tool or of the gateway. */
  name: string;
  /** Unix ms. */
  startedAt: number;
  endedAt: number;
  isOk: boolean;
  /** Tokens that a gateway counted, 0 without any. */
  inputTokens: number;
  outputTokens: number;
  /** The arguments of a tool, masked. */
  input: string;
}

/** Calls that the trace of one run has. */
const CALLS_OF_RUN_MAX = 200;
/** Runs whose calls are kept at the same time. */
const RUNS_WITH_CALLS_MAX = 1_000;
const CALL_INPUT_CHARACTERS = 2_000;

/** The calls of running executions, in memory, until their traces are built. */
export class RunCalls {
  readonly #runs = new Map<string, RunCall[]>();

  add(executionId: string, call: RunCall): void {
    const calls = this.#runs.get(executionId) ?? [];
    if (calls.length >= CALLS_OF_RUN_MAX) return;
    calls.push({ ...call, input: call.input.slice(0, CALL_INPUT_CHARACTERS) });
    this.#runs.set(executionId, calls);
    if (this.#runs.size <= RUNS_WITH_CALLS_MAX) return;
    // A run whose end was never read, as after a loss of the database.
    for (const oldest of this.#runs.keys()) {
      this.#runs.delete(oldest);
      break;
    }
  }

  /** Returns and forgets the calls of a run. */
  take(executionId: string): readonly RunCall[] {
    const calls = this.#runs.get(executionId) ?? [];
    this.#runs.delete(executionId);
    return calls;
  }

  /** Returns callbacks that note the tools of a run. An agent does not say which tool has ended, so the oldest open one ends. */
  watchTools(
    executionId: string,
    now: () => number,
  ): { onTool: (name: string, input: string) => void; onToolEnd: (isOk: boolean) => void } {
    const open: { name: string; input: string; startedAt: number }[] = [];
    return {
      onTool: (name, input) => {
        if (open.length < CALLS_OF_RUN_MAX) open.push({ name, input, startedAt: now() });
      },
      onToolEnd: (isOk) => {
        const tool = open.shift();
        if (tool === undefined) return;
        const call = { ...tool, kind: "tool" as const, endedAt: now(), isOk };
        this.add(executionId, { ...call, inputTokens: 0, outputTokens: 0 });
      },
    };
  }
}
