import { ServiceError } from "../../domain/call/error.ts";
import type {
  RunEnd,
  RunEvents,
  RunLogPart,
  RunLogSize,
  RunnerBeat,
  RunnerBeatAnswer,
  RunnerClaim,
  RunnerClaimAnswer,
  RunReceipt,
  RunRepoPart,
} from "../../domain/workers/runner.ts";
import type { RunnerBinding } from "../../domain/call/scope.ts";
import { type Answer, answer } from "../call/answer.ts";
import type { Call } from "../call/call.ts";
import type { RunFile } from "../call/remote_runs.ts";
import type { Deps } from "../call/services.ts";

const STORED: RunReceipt = { status: "stored" };

/**
 * Makes the calling process the runner's only process and returns a function that waits for runs (contract 18). Throws
 * `conflict` when another process uses this runner or when this one is too old, and `unavailable` while the service
 * starts or stops.
 */
export async function claimRun(
  { remote, lifecycle }: Deps<"remote" | "lifecycle">,
  call: Call,
  claim: RunnerClaim,
): Promise<(signal: AbortSignal) => Promise<Answer<RunnerClaimAnswer>>> {
  if (lifecycle.state !== "ready") {
    throw new ServiceError("unavailable", `Cannot hand out runs: the service is ${lifecycle.state}`, {
      retry_after_s: 1,
    });
  }
  const wait = await remote().claim(requireRunner(call), claim);
  return async (signal) => answer(await wait(AbortSignal.any([signal, lifecycle.stopping])));
}

/** Renews the leases of a runner's runs. Throws `conflict` when another process uses this runner. */
export async function beatRuns(
  { remote }: Deps<"remote">,
  call: Call,
  beat: RunnerBeat,
): Promise<Answer<RunnerBeatAnswer>> {
  return answer(await remote().beat(requireRunner(call), beat));
}

/** Appends to a run's log. Throws `conflict` when the run no longer belongs to the caller. */
export async function appendRunLog(
  { remote }: Deps<"remote">,
  call: Call,
  id: string,
  { part, bytes }: { part: RunLogPart; bytes: Uint8Array },
): Promise<Answer<RunLogSize>> {
  return answer(await remote().log(requireRunner(call), id, part, bytes));
}

/** Stores a run's events. Throws `conflict` when the run no longer belongs to the caller. */
export async function reportRun(
  { remote }: Deps<"remote">,
  call: Call,
  id: string,
  events: RunEvents,
): Promise<Answer<RunReceipt>> {
  await remote().report(requireRunner(call), id, events);
  return answer(STORED);
}

/** Stores a run's outcome, also repeatedly. Throws `conflict` when the run no longer belongs to the caller. */
export async function endRun(
  { remote }: Deps<"remote">,
  call: Call,
  id: string,
  end: RunEnd,
): Promise<Answer<RunReceipt>> {
  await remote().end(requireRunner(call), id, end);
  return answer(STORED);
}

/** Opens a file of a run's message. Throws `not_found`, or `conflict` when the run no longer belongs to the caller. */
export function openRunMedia(
  { remote }: Deps<"remote">,
  call: Call,
  id: string,
  name: string,
): Promise<RunFile> {
  return remote().media(requireRunner(call), id, name);
}

/** Opens a bundle of the branch of a run. Throws `not_found`, or `conflict` with the reason. */
export function openRunRepo(
  { remote, lifecycle }: Deps<"remote" | "lifecycle">,
  call: Call,
  id: string,
): Promise<RunFile> {
  return remote().repo(requireRunner(call), id, lifecycle.stopping);
}

/** Stores a part of a run's commits, also repeatedly. Throws `conflict`, `invalid_request` or `payload_too_large`. */
export async function storeRunCommits(
  { remote }: Deps<"remote">,
  call: Call,
  id: string,
  { part, bytes }: { part: RunRepoPart; bytes: Uint8Array },
): Promise<Answer<RunLogSize>> {
  return answer(await remote().commits(requireRunner(call), id, part, bytes));
}

function requireRunner({ caller: { runner } }: Call): RunnerBinding {
  if (runner === undefined) throw new ServiceError("forbidden", "Cannot do this: only runners can");
  return runner;
}
