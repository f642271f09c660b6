import { REPO_CHUNK_MAX_BYTES, REPO_MAX_BYTES, type RunLogSize } from "../domain/workers/runner.ts";
import { SetupError } from "../run/variables.ts";
import { readPart } from "./log_sender.ts";
import { RefusedError, type ServiceClient } from "./service_client.ts";

const SEND_TIMEOUT_MS = 600_000;
const PARTS_LOST_MAX = 5;

interface Transfer {
  link: ServiceClient;
  executionId: string;
  signal: AbortSignal;
}

/** Downloads the branch of a run. Throws SetupError with the reason of the service. */
export async function downloadBranch({ link, executionId, signal }: Transfer, path: string): Promise<void> {
  try {
    await link.download(`/api/runs/${executionId}/repo`, { path, signal });
  } catch (error) {
    if (error instanceof RefusedError) throw new SetupError(error.message);
    throw error;
  }
}

/** Uploads the commits of a run in parts. Throws Error with the reason. */
export async function uploadCommits(
  { link, executionId, signal, epoch }: Transfer & { epoch: number },
  path: string,
): Promise<void> {
  const { size } = await Deno.stat(path);
  if (size > REPO_MAX_BYTES) throw new Error(`they have more than ${REPO_MAX_BYTES / 1024 / 1024} MiB`);
  for (let offset = 0, lost = 0; offset < size;) {
    const bytes = await readPart(path, offset, REPO_CHUNK_MAX_BYTES);
    const query = `epoch=${epoch}&offset=${offset}&size=${size}`;
    const { value } = await link.postUntilAnswered<RunLogSize>(
      `/api/runs/${executionId}/repo?${query}`,
      bytes,
      { method: "PUT", timeoutMs: SEND_TIMEOUT_MS, signal, ofRun: true },
    );
    // If the service has lost a part, sending continues there.
    if (value.size <= offset && ++lost > PARTS_LOST_MAX) throw new Error("the service does not keep them");
    offset = value.size;
  }
}
