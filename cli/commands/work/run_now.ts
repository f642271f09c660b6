import { ServiceError } from "../../../src/domain/call/error.ts";
import { isEndedTask } from "../../../src/domain/call/vocabulary.ts";
import { usageError } from "../../terminal/exit.ts";
import { type AnyCommand, type BaseContext, command, option } from "../command.ts";
import { parseTimeout, TIMEOUT } from "../duration.ts";
import { throwUnlessCompleted, throwUnlessRunDone, waitForTask } from "./task_wait.ts";

/** Declares `task run` and `schedule run`. With --wait the exit code reports the outcome of the run (contract 8.9). */
export function createRunNowCommand(group: "task" | "schedule", about: string): AnyCommand {
  return command({
    name: "run",
    about,
    args: ["id"],
    refs: { id: group },
    options: {
      wait: option.flag("--wait", "wait for the run; the exit code reports the outcome"),
      timeout: TIMEOUT,
    },
    examples: [`${group} run --wait 01a1fd23-4c79-764a-afab-047dd52450e4`],
    async run(context) {
      const { client, out, args: [id = ""], options: { wait, timeout }, reportId } = context;
      const limitMs = parseTimeout(timeout, Infinity);
      if (timeout !== undefined && !wait) throw usageError("--timeout requires --wait");
      if (!wait) {
        const { json, value } = await client.call("POST /api/tasks/:id/run", { params: { id }, body: {} });
        return out.object(json, value);
      }
      const until = performance.now() + limitMs;
      const runNo = await requestRun(context, id, until);
      reportId("accepted", id, ` run ${runNo}`);
      await waitAndPrintTask(context, id, Math.max(0, until - performance.now()), runNo);
    },
  });
}

// An active run may have started before the reason for this one, so the new run follows it.
async function requestRun(context: BaseContext, id: string, until: number): Promise<number> {
  const { client, note } = context;
  while (true) {
    try {
      return (await client.call("POST /api/tasks/:id/run", { params: { id }, body: {} })).value.run_no;
    } catch (error) {
      if (!(error instanceof ServiceError) || error.code !== "conflict") throw error;
      const { value: task } = await client.call("GET /api/tasks/:id", { params: { id } });
      if (isEndedTask(task.status) || task.type !== "scheduled") throw error;
      if (task.status !== "running") continue;
      note(`waiting for run ${task.run_no} to end before starting the next one`);
      const limitMs = Math.max(0, until - performance.now());
      await waitForTask(context, { id, runNo: task.run_no, limitMs });
    }
  }
}

/** Waits for a task or one of its runs and prints the task. Throws Exit 8 if it failed, 124 at the timeout. */
export async function waitAndPrintTask(
  context: BaseContext,
  id: string,
  limitMs: number,
  runNo?: number,
): Promise<void> {
  const { json, task } = await waitForTask(context, { id, limitMs, runNo });
  context.out.object(json, task);
  if (runNo === undefined) throwUnlessCompleted(task);
  else await throwUnlessRunDone(context, task, runNo);
}
