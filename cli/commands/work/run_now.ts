import { ServiceError } from "../../../src/domain/error.ts";
import { isEndedTask } from "../../../src/domain/vocabulary.ts";
import { type AnyCommand, command, type Context } from "../command.ts";
import { parseTimeout, TIMEOUT } from "../duration.ts";
import { usageError } from "../../terminal/exit.ts";
import { throwUnlessCompleted, throwUnlessRunDone, waitForTask } from "./task_wait.ts";

/** `task run` and `schedule run`: a run of a schedule out of its turn; with --wait its outcome is the exit code (contract 8.9). */
export function createRunNowCommand(group: "task" | "schedule", about: string): AnyCommand {
  return command({
    name: "run",
    about,
    args: ["id"],
    refs: { id: "task" },
    options: {
      wait: {
        flags: "--wait",
        about: "wait until this run has ended; its outcome is the exit code",
        type: "flag",
      },
      timeout: TIMEOUT,
    },
    examples: [`${group} run --wait 01a1fd23-4c79-764a-afab-047dd52450e4`],
    async run(context) {
      const { client, out, args: [id = ""], options: { wait, timeout }, reportId: tell } = context;
      const limitMs = parseTimeout(timeout, Infinity);
      if (timeout !== undefined && !wait) throw usageError("--timeout goes with --wait");
      if (!wait) {
        const { json, value } = await client.call("POST /api/tasks/:id/run", { params: { id }, body: {} });
        return out.object(json, value);
      }
      const until = performance.now() + limitMs;
      const runNo = await requestRun(context, id, until);
      tell("accepted", id, ` run ${runNo}`);
      await waitAndPrintTask(context, id, Math.max(0, until - performance.now()), runNo);
    },
  });
}

/** Asks for a run of its own: one that is going on may have begun before what this one is for, so it comes behind it. */
async function requestRun(context: Context, id: string, until: number): Promise<number> {
  const { client, out, note } = context;
  while (true) {
    try {
      return (await client.call("POST /api/tasks/:id/run", { params: { id }, body: {} })).value.run_no;
    } catch (error) {
      if (!(error instanceof ServiceError) || error.code !== "conflict") throw error;
      const { value: task } = await client.call("GET /api/tasks/:id", { params: { id } });
      if (isEndedTask(task.status) || task.type !== "scheduled") throw error;
      if (task.status !== "running") continue;
      note(`run ${task.run_no} of it is going on; the next one is asked for behind it`);
      const limitMs = Math.max(0, until - performance.now());
      await waitForTask(
        context,
        { id, runNo: task.run_no, limitMs },
        (late) => out.object(late.json, late.task),
      );
    }
  }
}

/** Waits for a task or one run of it, prints the task, and throws Exit 8 when it failed, 124 when it takes too long. */
export async function waitAndPrintTask(
  context: Context,
  id: string,
  limitMs: number,
  runNo?: number,
): Promise<void> {
  const { out } = context;
  const { json, task } = await waitForTask(
    context,
    { id, limitMs, runNo },
    (late) => out.object(late.json, late.task),
  );
  out.object(json, task);
  if (runNo === undefined) throwUnlessCompleted(task);
  else await throwUnlessRunDone(context, task, runNo);
}
