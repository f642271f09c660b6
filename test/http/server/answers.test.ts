import { describe, expect, it } from "vitest";
import { buildFakeEngines } from "../../harness/fakes/agents.ts";
import { type App, openApp } from "../../harness/service/app.ts";
import { buildBearer } from "../../harness/model/people.ts";
import { StreamClient } from "../../harness/stream.ts";

async function openRoom(quietWindow: string, workers: string[] = ["Ada"]) {
  const app = await openApp({ config: { engines: buildFakeEngines(), bee: { quiet_window: quietWindow } } });
  for (const name of workers) await app.call("POST /api/workers", { name });
  const { id } = await app.call("POST /api/local/sessions");
  const say = async (content: string, alone?: boolean) =>
    (await app.call(`POST /api/local/sessions/${id}/messages`, { content, ...(alone ? { alone } : {}) }))
      .message_id;
  const history = () => app.call(`GET /api/local/sessions/${id}/messages`);
  return { app, id, say, history, [Symbol.asyncDispose]: () => app[Symbol.asyncDispose]() };
}

async function routedOf(app: App, id: string): Promise<string> {
  return (await app.call(`GET /api/messages/${id}/trace`)).message.routed;
}

describe("messages with `alone`, and replies to each message (contract 8.8)", () => {
  it("are routed immediately, in order and without merging, and each reply names its message", async () => {
    await using room = await openRoom("1h");
    const { app, say, history } = room;
    const texts = ["say one", "say two", "say three"];
    const ids = await Promise.all(texts.map((text) => say(text, true)));
    await app.settle();
    const executions = await app.call("GET /api/executions");
    expect(executions.map((run: { instruction: string }) => run.instruction).sort()).toEqual(texts.sort());
    const said = await history();
    const bee = said.filter((message: { role: string }) => message.role === "bee");
    expect(
      bee.map((message: { reply_to: string; content: string }) => [message.reply_to, message.content]).sort(),
    )
      .toEqual(ids.map((id, at) => [id, ["one", "two", "three"][at]]).sort());
    expect(said.find((message: { role: string }) => message.role === "user").reply_to).toBeNull();
    const url = `${app.url}/api/local/sessions/${room.id}/stream?after=0`;
    const client = await StreamClient.open(url, buildBearer(await app.token()));
    await client.until((one) =>
      ids.every((id) => one.named("message").some(({ data }) => data.reply_to === id))
    );
    await client.close();
  });

  it("completes the waiting messages before it, and is not merged with later ones", async () => {
    await using room = await openRoom("1h");
    const { app, say } = room;
    // No routing happens in between.
    const intake = app.server.stages.find(({ name }) => name === "intake");
    await say("say a");
    await say("say b");
    const alone = await say("say c", true);
    const after = await say("say d");
    intake?.wake();
    await app.until("execution.completed", 2);
    const rows = await app.db.read<{ id: string; status: string; merged_into: string | null }>(
      "select id, status, merged_into from inbound_message order by id",
    );
    expect(rows.map((row) => row.status)).toEqual(["merged", "bee_processed", "bee_processed", "received"]);
    expect(rows[0]?.merged_into).toBe(rows[1]?.id);
    expect([rows[2]?.id, rows[3]?.id]).toEqual([alone, after]);
    const ran = await app.db.read<{ instruction: string }>("select instruction from execution order by id");
    expect(ran.map((row) => row.instruction)).toEqual(["say a\nsay b", "say c"]);
  });

  it("a message names the task that handles it, or none", async () => {
    await using room = await openRoom("0ms", ["Ada", "Bob"]);
    const { app, say } = room;
    const given = await say("@Ada say hi", true);
    const lost = await say("whatever", true);
    await app.settle();
    expect([await routedOf(app, given), await routedOf(app, lost)]).toEqual(["task", "nobody"]);
    const [listed] = await app.call("GET /api/messages/inbound?page_size=1");
    expect(listed.routed).toBe("nobody");
  });
});

describe("numbered runs of a schedule (contract 8.9)", () => {
  async function schedule(app: App, instruction: string) {
    const { id: worker_id } = await app.call("POST /api/workers", { name: "Ada" });
    return await app.call("POST /api/tasks", {
      message_id: "nightly",
      worker_id,
      instruction,
      type: "scheduled",
      cron: "0 0 1 1 *",
    });
  }

  it("`run` returns the number of the run, and a wait for that number ends also long after the run", async () => {
    await using app = await openApp({ config: { engines: buildFakeEngines() } });
    const task = await schedule(app, "ok");
    expect(task).toMatchObject({ run_no: 0, last_status: "", last_run_at: null, failures_in_row: 0 });
    const asked = await app.call(`POST /api/tasks/${task.id}/run`);
    expect(asked).toMatchObject({ run_no: 1, status: "pending", next_run_at: task.next_run_at });
    await app.settle();
    const waited = await app.call(`GET /api/tasks/${task.id}/wait?run_no=1&timeout_ms=5000`);
    expect(waited).toMatchObject({
      run_no: 1,
      status: "scheduled",
      last_status: "completed",
      last_error: "",
    });
    expect(waited.last_run_at).toBeGreaterThanOrEqual(asked.updated_at);
    const early = performance.now();
    expect(await app.call(`GET /api/tasks/${task.id}/wait?run_no=2&timeout_ms=100`)).toMatchObject({
      run_no: 1,
    });
    expect(performance.now() - early).toBeGreaterThanOrEqual(90);
    const next = app.call(`GET /api/tasks/${task.id}/wait?run_no=2&timeout_ms=10000`);
    await app.call(`POST /api/tasks/${task.id}/run`);
    expect(await next).toMatchObject({ run_no: 2, status: "scheduled" });
    for (const bad of ["0", "x", ""]) {
      expect((await app.send(`GET /api/tasks/${task.id}/wait?run_no=${bad}`)).status).toBe(400);
    }
  });

  it("`run` starts one run per Idempotency-Key", async () => {
    await using app = await openApp({ config: { engines: buildFakeEngines() } });
    const { id } = await schedule(app, "ok");
    const first = await app.call(`POST /api/tasks/${id}/run`, {}, { "idempotency-key": "k" });
    await app.settle();
    expect(await app.call(`POST /api/tasks/${id}/run`, {}, { "idempotency-key": "k" })).toEqual(first);
    expect(await app.call(`GET /api/tasks/${id}`)).toMatchObject({
      run_no: 1,
      run_count: 1,
      status: "scheduled",
    });
  });

  it("failures are counted until a run completes; a cancelled run changes nothing", async () => {
    await using app = await openApp({ config: { engines: buildFakeEngines() } });
    const { id } = await schedule(app, "exit 3");
    const run = async () => {
      const { run_no } = await app.call(`POST /api/tasks/${id}/run`);
      return await app.call(`GET /api/tasks/${id}/wait?run_no=${run_no}&timeout_ms=10000`);
    };
    expect(await run()).toMatchObject({ last_status: "failed", failures_in_row: 1, run_no: 1 });
    expect(await run()).toMatchObject({
      failures_in_row: 2,
      last_error: expect.stringMatching(/^exit_code: /),
    });
    const doctor = await app.call("GET /api/system/doctor");
    expect(doctor.checks.find(({ name }: { name: string }) => name === "schedules")).toMatchObject({
      status: "warn",
      detail: expect.stringContaining(id),
    });
    await app.db.write([{ sql: "update task set instruction = 'sleep 30' where id = ?", args: [id] }]);
    await app.call(`POST /api/tasks/${id}/run`);
    await app.until("execution.started", 3);
    const { execution_id } = await app.call(`GET /api/tasks/${id}`);
    await app.call(`POST /api/executions/${execution_id}/cancel`);
    expect(await app.call(`GET /api/tasks/${id}/wait?run_no=3&timeout_ms=10000`)).toMatchObject({
      last_status: "cancelled",
      failures_in_row: 2,
    });
    await app.db.write([{ sql: "update task set instruction = 'ok' where id = ?", args: [id] }]);
    expect(await run()).toMatchObject({ last_status: "completed", last_error: "", failures_in_row: 0 });
    const well = await app.call("GET /api/system/doctor");
    expect(well.checks.find(({ name }: { name: string }) => name === "schedules").status).toBe("ok");
  });
});
