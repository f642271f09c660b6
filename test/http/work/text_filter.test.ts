import { expect, it } from "vitest";
import { buildShellEngine } from "../../harness/fakes/agents.ts";
import { openApp } from "../../harness/service/app.ts";
import { createTask } from "../../harness/service/runner.ts";

it("lists find runs, tasks and messages by a part of their text, and runs by engine and failure", async () => {
  await using app = await openApp({
    inMemory: true,
    config: { engines: { breaks: buildShellEngine("echo 'no route to 10 % of_hosts' >&2; exit 3") } },
  });
  const ada = await app.call("POST /api/workers", { name: "Ada", engine: "echo" });
  const eve = await app.call("POST /api/workers", { name: "Eve", engine: "breaks" });
  await createTask(app, ada.id, "write the Report");
  await createTask(app, eve.id, "fetch the pictures");
  const chat = await app.call("POST /api/local/sessions", { worker_id: ada.id });
  await app.call(`POST /api/local/sessions/${chat.id}/messages`, { content: "good morning" });
  await app.settle();
  const find = async (path: string) =>
    (await app.call(`GET /api/${path}`)).map((row: { instruction?: string; content?: string }) =>
      row.instruction ?? row.content
    );
  expect(await find("executions?text=REPORT")).toEqual(["write the Report"]);
  expect(await find("executions?text=no+route")).toEqual(["fetch the pictures"]);
  expect(await find("executions?text=eve")).toEqual(["fetch the pictures"]);
  // % and _ are characters like any others.
  expect(await find("executions?text=10+%25+of_h")).toEqual(["fetch the pictures"]);
  expect(await find("executions?text=1_+%25")).toEqual([]);
  expect(await find("executions?engine=breaks&failure=exit_code,timeout")).toEqual(["fetch the pictures"]);
  expect(await find("executions?engine=breaks&failure=timeout")).toEqual([]);
  expect(await find(`tasks?worker_id=${eve.id}&text=pictures`)).toEqual(["fetch the pictures"]);
  expect(await find("messages/inbound?text=morning")).toEqual(["good morning"]);
  expect(await find("messages/outbound?text=nothing")).toEqual([]);
  await app.call(`PUT /api/workers/${ada.id}`, { paused: true });
  await createTask(app, ada.id, "water the plants");
  await createTask(app, ada.id, "feed the cat");
  expect(await find("queue?status=failed,cancelled")).toEqual(["fetch the pictures"]);
  expect(await find("queue?status=running,completed&text=report")).toEqual(["write the Report"]);
  expect(await find("queue")).toEqual(["feed the cat", "water the plants"]);
  expect(await find("queue?text=plants")).toEqual(["water the plants"]);
  const plan = { message_id: "plan", worker_id: ada.id, type: "scheduled", cron: "0 5 * * *" };
  await app.call("POST /api/tasks", { ...plan, instruction: "read the mail", name: "Mail" });
  await app.call("POST /api/tasks", { ...plan, instruction: "sweep the floor" });
  expect(await find("schedules?text=MAIL")).toEqual(["read the mail"]);
});
