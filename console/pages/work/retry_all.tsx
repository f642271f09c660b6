import { RotateCcw } from "lucide-preact";
import { api, ask, askAll, askPage, type Execution } from "../../live/api.ts";
import type { LiveList } from "../../live/resource.ts";
import { may } from "../../live/session.ts";
import { Act } from "../../parts/button.tsx";
import { confirmed } from "../../parts/dialog.tsx";
import { manyText } from "../../parts/format.ts";
import { attempt, say } from "../../parts/toast.tsx";

const PAGE_SIZE = 100;
// Each is a request of its own: more would take minutes, and cost much.
const RETRY_MAX = 200;

interface RetryProps {
  worker: string;
  session: string;
  list: LiveList<Execution>;
}

/** Runs everything again that is listed as failed, each once (contract 17). */
export function RetryAll({ worker, session, list }: RetryProps) {
  const expected = Number(list.total);
  if (!may("write:executions") || !(expected > 1 && expected <= RETRY_MAX)) return null;
  async function retry(): Promise<void> {
    await attempt(async () => {
      // Read before it is asked: what fails while somebody thinks about it is not what they said yes to.
      const failed = await readFailed(worker, session);
      if (failed.length > 0 && await wanted(failed.length)) await retryEach(failed);
    });
    list.reload();
  }
  return (
    <Act run={retry}>
      <RotateCcw size={16} aria-hidden="true" /> Run all again
    </Act>
  );
}

function wanted(count: number): Promise<boolean> {
  return confirmed({
    title: `Run ${manyText(count, "failed run")} again?`,
    text: "Each gets a new task with the same instruction, and costs what a run costs.",
    action: `Run ${count} again`,
  });
}

/** Runs these again, one after the other, and says how many could be. */
async function retryEach(failed: readonly Execution[]): Promise<void> {
  let done = 0;
  for (const { id } of failed) {
    const call = ask(api.POST("/api/executions/{id}/retry", { params: { path: { id } }, body: {} }));
    // Its worker may be gone; the others are run all the same.
    if (await call.then(() => true, () => false)) done++;
  }
  say(`${done} of ${failed.length} run again`, done < failed.length);
}

function readFailed(worker: string, session: string): Promise<Execution[]> {
  return askAll((cursor) => {
    const query = {
      status: "failed",
      page_size: PAGE_SIZE,
      ...(worker === "" ? {} : { worker_id: worker }),
      ...(session === "" ? {} : { session_id: session }),
      ...(cursor === undefined ? {} : { cursor }),
    };
    return askPage(api.GET("/api/executions", { params: { query } }));
  }, RETRY_MAX);
}
