import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { openApp } from "../harness/service/app.ts";
import { createTempDir } from "../harness/service/process.ts";
import { checkAtAnyMoment, checkAtRest, type Evidence, withChangedCopy } from "./checker.ts";

/** Creates a data directory after a message, its task, its run and its reply, and an upload. */
async function createDataDir(dataDir: string): Promise<Evidence> {
  await using app = await openApp({ dataDir });
  const worker = await app.call("POST /api/workers", { name: "Ada" });
  const { id } = await app.call("POST /api/local/sessions", { worker_id: worker.id });
  const { message_id } = await app.call(`POST /api/local/sessions/${id}/messages`, { content: "hello" });
  await app.settle();
  const [task] = await app.call(`GET /api/tasks?worker_id=${worker.id}`);
  return {
    dataDir,
    messages: [message_id],
    tasks: [task.id],
    once: ["hello"],
    maxAttempts: 3,
    secrets: ["canary-4711"],
  };
}

// Lets each task wait for itself.
const LINK = "insert into task_parent (task_id, position, parent_id, status, ended_at) select id, 0, id,";

const BREAKS: [rule: RegExp, sql: string][] = [
  [/I1: inbound_message/, "delete from inbound_message"],
  [/I1: task/, "delete from task"],
  [/I2: a message has no end/, "update inbound_message set status = 'feeding'"],
  [/I2: a task has no end/, "update task set status = 'pending', due_at = 1"],
  [/I6: an execution is open/, "update execution set status = 'running', completed_at = null"],
  [/a running task has not exactly one open execution/, "update task set status = 'running'"],
  [/an execution has only a status or only a time of its end/, "update execution set completed_at = null"],
  [/has neither a reply nor a retry/, "delete from outbound_message"],
  [/has neither a task nor a reply/, "delete from task where 1; delete from outbound_message"],
  [/I4: more attempts/, "update execution set attempt = 4"],
  [/I5: a task's outcome/, "update task set execution_id = 'another'"],
  [/the counter task completed/, "update counter set value = 9 where name = 'task' and key = 'completed'"],
  [
    /DUR-2/,
    `insert into inbound_message (id, session_key, platform, platform_message_id, content, status, due_at, received_at)
    values ('x', 's', 'local', 'x', 'hello', 'failed', 1, 1)`,
  ],
  [/AFT-1: a run started/, `${LINK} '', null from task`],
  [/AFT-1: the number of open/, "update task set open_parents = 1"],
  [/AFT-1: a task waits although its parent/, `${LINK} '', 1 from task`],
  [
    /AFT-1: a task waits although a parent/,
    `update task set status = 'pending', due_at = 1; ${LINK} 'failed', 1 from task`,
  ],
  [/I9/, "update execution set result = 'it said canary-4711'"],
  [/an upload's file is gone/, "insert into upload values ('/none', 's', 'n', 'n', 1, 'text/plain', 1)"],
];

describe("the checker of the torture test", () => {
  it("finds nothing in a correct directory, and each kind of violation in a damaged one", async () => {
    await using folder = await createTempDir();
    const dataDir = join(folder.path, "data");
    const evidence = await createDataDir(dataDir);
    expect(await checkAtAnyMoment(dataDir)).toEqual([]);
    expect(await checkAtRest(evidence)).toEqual([]);
    for (const [rule, sql] of BREAKS) {
      await withChangedCopy(dataDir, sql.split(";"), async (copy) => {
        const faults = await checkAtRest({ ...evidence, dataDir: copy });
        expect([sql, faults.some((fault) => rule.test(fault)), faults]).toEqual([
          sql,
          true,
          expect.any(Array),
        ]);
      });
    }
    await Deno.writeTextFile(
      join(folder.path, "ledger"),
      "start t 1 1 1 e\nOVERLAP t 2 2 2 f\nOVERLAP-OF-LANE u 1 3 3 g\n",
    );
    expect(await checkAtRest({ ...evidence, agentLedger: join(folder.path, "ledger") })).toEqual([
      expect.stringMatching(/^I3: OVERLAP t/),
      expect.stringMatching(/^I3: OVERLAP-OF-LANE u/),
    ]);
  });
});
