import type {
  RunEnd,
  RunEvents,
  RunLogPart,
  RunLogSize,
  RunnerBeat,
  RunnerBeatAnswer,
  RunnerClaim,
  RunnerClaimAnswer,
  RunRepoPart,
} from "../../domain/workers/runner.ts";
import type { RunnerBinding } from "../../domain/call/scope.ts";

/** A file for a runner. The caller closes it. */
export interface RunFile {
  file: Deno.FsFile;
  size: number;
  mime: string;
  originalName: string;
}

/** The runs of runners, which `boot` passes to the operations (contract 18). */
export interface RemoteRuns {
  claim(
    runner: RunnerBinding,
    claim: RunnerClaim,
  ): Promise<(signal: AbortSignal) => Promise<RunnerClaimAnswer>>;
  beat(runner: RunnerBinding, beat: RunnerBeat): Promise<RunnerBeatAnswer>;
  log(runner: RunnerBinding, id: string, part: RunLogPart, bytes: Uint8Array): Promise<RunLogSize>;
  report(runner: RunnerBinding, id: string, events: RunEvents): Promise<void>;
  media(runner: RunnerBinding, id: string, name: string): Promise<RunFile>;
  repo(runner: RunnerBinding, id: string, signal: AbortSignal): Promise<RunFile>;
  commits(runner: RunnerBinding, id: string, part: RunRepoPart, bytes: Uint8Array): Promise<RunLogSize>;
  end(runner: RunnerBinding, id: string, end: RunEnd): Promise<void>;
}
