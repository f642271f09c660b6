import { describe, expect, it } from "vitest";
import { signal } from "../../src/engine/process/isolation.ts";
import { listWorkerProcesses } from "../harness/model/marked.ts";
import { openWarmService } from "../harness/service/open_world.ts";
import { waitUntil } from "../harness/wait.ts";

const RUN_VARIABLES = ["SVC_TOKEN", "SVC_SESSION_KEY", "SVC_MESSAGE_ID", "SVC_EXECUTION_ID", "SVC_TASK_ID"];

type Service = Awaited<ReturnType<typeof openWithSpare>>;

/** Starts a service with a first conversation, after which a spare process waits. */
async function openWithSpare(warm: object | null = { spare: 1, max: 10 }, memoryBytes = 0) {
  const one = await openWarmService(warm, {}, memoryBytes);
  const first = (await one.say("env SVC_RUN_ID")).result;
  const open = () => one.app.call("POST /api/local/sessions", { worker_id: one.worker.id });
  const listSpares = (known: readonly string[] = [first]) =>
    listAgents(one.worker.id).filter(({ mark }) => !known.includes(mark));
  return { ...one, first, open, listSpares };
}

function listAgents(worker: string): { pid: number; mark: string }[] {
  const marked = listWorkerProcesses(worker).map((pid) => {
    const [, mark = ""] = /\0SVC_RUN_ID=([^\0]*)/.exec(Deno.readTextFileSync(`/proc/${pid}/environ`)) ?? [];
    return { pid, mark };
  });
  return [...new Map(marked.map((one) => [one.mark, one])).values()];
}

const waitForSpare = (one: Service, known?: readonly string[]) =>
  waitUntil("a spare process waits", () => one.listSpares(known).length === 1);

/** Opens conversations until one gets a process that waited. Returns the conversation and the mark of the process. */
async function takeSpare(one: Service, known = [one.first]) {
  for (;;) {
    await waitForSpare(one, known);
    const spares = one.listSpares(known).map(({ mark }) => mark);
    const session = await one.open();
    const { result: mark } = await one.say("env SVC_RUN_ID", session);
    known.push(mark);
    // Otherwise the process had not opened its session yet.
    if (spares.includes(mark)) return { session, mark };
  }
}

describe("a spare process (contract 19.5)", () => {
  it("runs the first message of a new conversation, which then continues in it [CHD-15]", async () => {
    await using one = await openWithSpare();
    const { session } = await takeSpare(one);
    expect((await one.say("pid", session)).result).toMatch(/ 2$/);
    expect((await one.say("recall", session)).result).toBe("env SVC_RUN_ID | pid | recall");
    expect((await one.say("pid")).result).toMatch(/ 2$/);
    expect((await one.last()).usage).toEqual({ input_tokens: 10, output_tokens: 2, cost_usd: 0.5 });
  }, 180_000);

  it(
    "knows no conversation, token or run before its first turn, and then only its own [CHD-15]",
    async () => {
      await using one = await openWithSpare();
      const { id } = one.worker;
      await one.app.call("PUT /api/memory/global/place", { value: "memory canary" }).catch(() => {});
      await one.say("say word canary");
      const before = await one.say("bash echo $SVC_TOKEN $SVC_SESSION_KEY $SVC_MESSAGE_ID $SVC_EXECUTION_ID");
      const { session } = await takeSpare(one);
      const early = (await one.say("early", session)).result;
      expect(early).toContain(id);
      for (const canary of [...before.result.split(" "), "canary", session.id]) {
        expect(early).not.toContain(canary);
      }
      const [, env, files] = JSON.parse(early);
      expect(Object.keys(env).filter((name) => RUN_VARIABLES.includes(name))).toEqual([]);
      expect(files.map(({ name }: { name: string }) => name).sort()).toEqual(["mcp.json", "tools.json"]);
      const run = await one.say("bash echo $SVC_MESSAGE_ID $SVC_EXECUTION_ID $SVC_SESSION_KEY", session);
      expect(run.result).toBe(`${run.message_id} ${run.id} local:${session.id}`);
      expect((await one.say("keep", session)).result).toBe("200");
      expect((await one.say("kept", session)).result).toBe("401 200");
    },
    180_000,
  );

  it("ends before the answer to a change of its worker, and with it [CHD-15, KEY-1]", async () => {
    await using one = await openWithSpare();
    const { id } = one.worker;
    await one.app.call("PUT /api/secrets/key", { value: "first canary", workers: [id] });
    const changes: [string, object][] = [
      [`PUT /api/workers/${id}`, { env: { API_KEY: "secret:key" } }],
      ["PUT /api/secrets/key", { value: "second canary" }],
      [`PUT /api/workers/${id}`, { scopes: ["read:workers"] }],
      [`PUT /api/workers/${id}`, { engine_args: { claude: "--verbose" } }],
      [`PUT /api/workers/${id}`, { paused: true }],
    ];
    for (const [route, change] of changes) {
      await waitUntil("a spare process waits", () => listAgents(id).length === 2);
      await one.app.call(route, change);
      expect([route, change, listWorkerProcesses(id)]).toEqual([route, change, []]);
      if ("paused" in change) await one.app.call(route, { paused: false });
      await one.say("pid", await one.open());
    }
    await waitUntil("a spare process waits", () => listAgents(id).length === 2);
    await one.app.call(`PUT /api/workers/${id}`, { description: "No process reads this when it starts" });
    expect(listAgents(id)).toHaveLength(2);
    await one.app.call(`DELETE /api/workers/${id}`);
    expect(listWorkerProcesses(id)).toEqual([]);
  }, 180_000);

  it("ends with the service [CHD-15]", async () => {
    const one = await openWithSpare();
    await waitForSpare(one);
    await one[Symbol.asyncDispose]();
    expect(listWorkerProcesses(one.worker.id)).toEqual([]);
  });

  it("counts in `max`, and gives way to the processes of conversations", async () => {
    await using few = await openWithSpare({ spare: 1, max: 2 });
    await waitForSpare(few);
    const other = await few.open();
    await few.say("pid", other);
    await waitUntil("no spare process waits", () => listAgents(few.worker.id).length === 2);
    expect((await few.say("pid")).result).toMatch(/ 2$/);
    expect((await few.say("pid", other)).result).toMatch(/ 2$/);
    await waitUntil("no spare process waits again", () => listAgents(few.worker.id).length === 2);
  }, 180_000);

  it("waits by default on machines with 8 GB of memory, and never with `spare: 0`", async () => {
    await using one = await openWithSpare(null, 8e9);
    await waitForSpare(one);
    for (const [warm, memory] of [[{}, 7.9e9], [{ spare: 0 }, 8e9]] as const) {
      await using none = await openWithSpare(warm, memory);
      await none.say("pid", await none.open());
      expect(listAgents(none.worker.id)).toHaveLength(2);
    }
  }, 180_000);

  it("is replaced in the same attempt when it has died or does not answer", async () => {
    await using one = await openWithSpare();
    const known = [one.first];
    for (const kind of ["SIGKILL", "SIGSTOP"] as const) {
      const { mark } = await takeSpare(one, known);
      known.push(mark);
      await waitForSpare(one, known);
      for (const { pid } of one.listSpares(known)) signal(pid, kind);
      const session = await one.open();
      expect(await one.say("pid", session)).toMatchObject({
        ...{ status: "completed", attempt: 1, result: expect.stringMatching(/ 1$/) },
      });
      known.push((await one.say("env SVC_RUN_ID", session)).result);
    }
  }, 180_000);
});
