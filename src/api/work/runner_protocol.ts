// What runners call: they claim runs and report them (contract 18)
import { ServiceError } from "../../domain/call/error.ts";
import type {
  RunEnd,
  RunEvents,
  RunLogged,
  RunLogPart,
  RunnerBeat,
  RunnerClaim,
  RunnerClaimed,
  RunnerHeard,
  RunStored,
} from "../../domain/workers/runner.ts";
import type { RunnerBinding } from "../../domain/call/scope.ts";
import { type Answer, answer } from "../call/answer.ts";
import type { Call } from "../call/call.ts";
import type { RunFile } from "../call/remote_runs.ts";
import type { Deps } from "../call/services.ts";

const STORED: RunStored = { status: "stored" };

/**
 * POST /api/runners/claim: the process that asks is the one of its runner from here on. Answers what waits for a run and answers it with
 * its lease (contract 18). Throws `conflict` when another process runs as this runner, or when this one is too old; `unavailable` while the
 * service starts or stops.
 */
export async function claimRun(
  { remote, lifecycle }: Deps<"remote" | "lifecycle">,
  call: Call,
  claim: RunnerClaim,
): Promise<(signal: AbortSignal) => Promise<Answer<RunnerClaimed>>> {
  if (lifecycle.state !== "ready") {
    throw new ServiceError("unavailable", `Cannot give runs now: the service is ${lifecycle.state}`, {
      retry_after_s: 1,
    });
  }
  const wait = await remote().claim(runnerOf(call), claim);
  return async (signal) => answer(await wait(AbortSignal.any([signal, lifecycle.stopping])));
}

/** POST /api/runners/beat. Throws `conflict` when another process runs as this runner. */
export async function beatRuns(
  { remote }: Deps<"remote">,
  call: Call,
  beat: RunnerBeat,
): Promise<Answer<RunnerHeard>> {
  return answer(await remote().beat(runnerOf(call), beat));
}

/** POST /api/runs/:id/log. Throws `conflict` when the run belongs to the caller no longer. */
export async function appendRunLog(
  { remote }: Deps<"remote">,
  call: Call,
  id: string,
  { part, bytes }: { part: RunLogPart; bytes: Uint8Array },
): Promise<Answer<RunLogged>> {
  return answer(await remote().log(runnerOf(call), id, part, bytes));
}

/** POST /api/runs/:id/events. Throws `conflict` when the run belongs to the caller no longer. */
export async function reportRun(
  { remote }: Deps<"remote">,
  call: Call,
  id: string,
  events: RunEvents,
): Promise<Answer<RunStored>> {
  await remote().report(runnerOf(call), id, events);
  return answer(STORED);
}

/** POST /api/runs/:id/end: the same report again is answered alike. Throws `conflict` when the run belongs to the caller no longer. */
export async function endRun(
  { remote }: Deps<"remote">,
  call: Call,
  id: string,
  end: RunEnd,
): Promise<Answer<RunStored>> {
  await remote().end(runnerOf(call), id, end);
  return answer(STORED);
}

/** GET /api/runs/:id/media/:name: a file of the message of a run. Throws `not_found`; `conflict` when the run belongs to the caller no longer. */
export function openRunMedia(
  { remote }: Deps<"remote">,
  call: Call,
  id: string,
  name: string,
): Promise<RunFile> {
  return remote().media(runnerOf(call), id, name);
}

function runnerOf({ caller: { runner } }: Call): RunnerBinding {
  if (runner === undefined) throw new ServiceError("forbidden", "Cannot do this: it is for runners");
  return runner;
}
