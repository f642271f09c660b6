import { expect, it } from "vitest";
import { openApp } from "../harness/app.ts";
import { awayWorker, FakeRunner, taskFor } from "../harness/runner.ts";
import { eventually } from "../harness/wait.ts";

const WILD = { input_tokens: 9e15, output_tokens: -7, cost_usd: 1e10 };

it("use without bounds keeps no outcome from being stored, and no sum from being read (contract 14, contract 18)", async () => {
  await using app = await openApp();
  const { token } = await app.call("POST /api/runners", { name: "r1", labels: ["x"] });
  const runner = new FakeRunner(app, token);
  const worker = await awayWorker(app, "echo");
  for (const text of ["one", "two"]) {
    await taskFor(app, worker, text);
    const id = (await runner.claim()).body.run.execution.execution_id;
    const windows = [{ name: "mine", utilization: 2, resets_at: null }];
    const events = [{ no: 1, kind: "usage", usage: WILD }, { no: 2, kind: "windows", windows }];
    expect((await runner.events(id, events)).status).toBe(200);
    expect((await runner.end(id, { usage: WILD, sessionUsage: WILD })).status).toBe(200);
    expect((await app.call(`GET /api/executions/${id}`)).usage)
      .toEqual({ input_tokens: 1e12, output_tokens: 0, cost_usd: 1e4 });
  }
  const sums = await app.db.read("select tokens, nano_usd from ledger where target = 'global' order by runs");
  expect(sums).toEqual([1, 2].map((runs) => ({ tokens: runs * 1e12, nano_usd: runs * 1e13 })));
  // A runner has a login of its own: its provider's windows say nothing about ours.
  expect(await app.db.read("select 1 from engine_window")).toEqual([]);
});

it("a lost run that cannot be ended stops neither those behind it nor the start (reliability RUN-1)", async () => {
  await using app = await openApp();
  const { token } = await app.call("POST /api/runners", { name: "r1", labels: ["x"] });
  const runner = new FakeRunner(app, token);
  const ids: string[] = [];
  for (const text of ["one", "two"]) {
    await taskFor(app, await awayWorker(app, "echo"), text);
    ids.push((await runner.claim()).body.run.execution.execution_id);
  }
  const [bad = "", good = ""] = ids;
  const refuse = `create trigger broken before update of status on execution when new.id = '${bad}' begin
    select raise(abort, 'this row is broken'); end`;
  await app.db.write([{ sql: refuse, args: [] }]);
  await app.db.write([{ sql: "update remote_run set lease_until = 1", args: [], bell: "rescuer" }]);
  await eventually(
    "the one behind it is ended",
    async () => (await app.call(`GET /api/executions/${good}`)).failure === "server_lost",
  );
  expect((await app.call(`GET /api/executions/${bad}`)).failure).toBe("");
});
