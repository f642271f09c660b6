import { rmSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { detectIsolation } from "../../src/engine/process/isolation.ts";
import { listWorkerProcesses } from "../harness/model/marked.ts";
import { hasNoProcess, openWarmService as world, readPid } from "../harness/service/open_world.ts";
import { waitUntil } from "../harness/wait.ts";

describe("an agent that stays open (contract 19)", () => {
  it("runs the next message of its conversation in the same process, with that run's token only [CHD-15]", async () => {
    await using one = await world();
    const first = await one.say("pid");
    const second = await one.say("pid");
    expect(first).toMatchObject({ status: "completed", result: expect.stringMatching(/ 1$/) });
    expect(second).toMatchObject({ status: "completed", session_id: first.session_id });
    expect(second.result).toBe(`${readPid(first)} 2`);
    expect([first.usage, second.usage]).toEqual([
      { input_tokens: 10, output_tokens: 2, cost_usd: 0.5 },
      { input_tokens: 10, output_tokens: 2, cost_usd: 0.5 },
    ]);
    expect(await one.app.call(`GET /api/executions/${second.id}/logs`)).toMatch(
      /starts in[^\n]*\n[^\n]*session[^\n]*\n[\s\S]*completed\]/,
    );
    expect((await one.say("keep")).result).toBe("200");
    expect((await one.say("kept")).result).toBe("401 200");
    for (const name of ["SVC_TOKEN", "SVC_MESSAGE_ID", "SVC_EXECUTION_ID", "SVC_TASK_ID"]) {
      expect((await one.say(`env ${name}`)).result).toBe("nothing");
    }
  });

  it("uses another process for another conversation, worker or set of arguments, and continues the session", async () => {
    await using one = await world();
    const first = readPid(await one.say("pid"));
    const other = await one.app.call("POST /api/local/sessions", { worker_id: one.worker.id });
    expect(listWorkerProcesses(one.worker.id).length).toBeGreaterThan(0);
    expect((await one.say("pid", other)).result).toMatch(/ 1$/);
    expect((await one.say("pid")).result).toBe(`${first} 2`);
    await one.app.call(`PUT /api/workers/${one.worker.id}`, { engine_args: { claude: "--verbose" } });
    const changed = await one.say("recall");
    expect(changed.result).toBe("pid | pid | recall");
    expect((await one.say("pid")).result).toMatch(/ 2$/);
  });

  it(
    "gets its next turn even when the agent has replaced the turn's files [CHD-6]",
    async () => {
      await using one = await world();
      const dir = '"$(dirname "$SVC_TOKEN_FILE")"';
      await one.say(`bash mkfifo ${dir}/turn.sh.part ${dir}/token.part; mkdir -p ${dir}/context.json.part/x`);
      expect(await one.say("pid")).toMatchObject({ status: "completed" });
      expect((await one.app.send("GET /livez")).status).toBe(200);
    },
    180_000,
  );

  it("ends before the answer to a new value or a revoked grant of a secret [KEY-1]", async () => {
    await using one = await world();
    const { id } = one.worker;
    await one.app.call("PUT /api/secrets/key", { value: "first canary", workers: [id] });
    await one.app.call(`PUT /api/workers/${id}`, { env: { API_KEY: "secret:key" } });
    for (const change of [{ value: "second canary" }, { workers: [] }]) {
      await one.say("pid");
      expect(listWorkerProcesses(id)).not.toEqual([]);
      await one.app.call("PUT /api/secrets/key", change);
      expect(listWorkerProcesses(id)).toEqual([]);
    }
    expect(await one.say("pid")).toMatchObject({ status: "failed", failure: "setup" });
  });

  it("asks questions on behalf of the current run", async () => {
    await using one = await world();
    await one.say("pid");
    const asked = await one.say("ask May I?");
    expect(asked.result).toContain("Question sent. End your turn");
    expect(await one.app.call("GET /api/questions")).toMatchObject([{
      text: "May I?",
      execution_id: asked.id,
      message_id: asked.message_id,
    }]);
  }, 180_000);

  it("ends with its turn when the turn left a program running", async () => {
    await using one = await world();
    const left = await one.say("leave");
    expect(left.status).toBe("completed");
    expect(listWorkerProcesses(one.worker.id)).toEqual([]);
    expect((await one.say("recall")).result).toBe("leave | recall");
  });

  it("ends when its turn left a hidden program running, and when it works without a request [CHD-15]", async () => {
    await using one = await world();
    if (await detectIsolation() === "namespace") {
      await one.say("hide");
      expect((await one.say("pid")).result).toMatch(/ 1$/);
    }
    await one.say("works");
    await waitUntil("it has gone", () => hasNoProcess(one.app, one.worker.id));
    expect((await one.say("pid")).result).toMatch(/ 1$/);
  });

  it("stays open when a person cancels its turn, and ends with a turn over its time limit", async () => {
    await using one = await world({}, { timeout: "3s" });
    const first = readPid(await one.say("pid"));
    await one.send("hang");
    await waitUntil("it runs", async () => (await one.last()).status === "running");
    const { id } = await one.last();
    // The agent must have written: a turn without output cannot be interrupted.
    await waitUntil(
      "it begins",
      async () => (await one.app.call(`GET /api/executions/${id}/logs`)).includes("session"),
    );
    expect(await one.app.call(`POST /api/executions/${id}/cancel`, {})).toMatchObject({
      failure: "cancelled",
    });
    expect((await one.say("pid")).result).toBe(`${first} 3`);
    expect(await one.say("stuck")).toMatchObject({ status: "failed", failure: "timeout" });
    expect(listWorkerProcesses(one.worker.id)).toEqual([]);
    expect((await one.say("recall")).result).toBe("pid | hang | pid | stuck | recall");
  }, 180_000);

  it("is replaced in the same attempt when it has died or does not answer", async () => {
    await using one = await world();
    for (const mood of ["dies", "deaf"]) {
      await one.say(mood);
      const next = await one.say("pid");
      expect(next).toMatchObject({ status: "completed", attempt: 1, result: expect.stringMatching(/ 1$/) });
    }
    expect((await one.say("recall")).result).toBe("dies | pid | deaf | pid | recall");
  }, 180_000);

  it("respects `keep`, `max`, `max_turns` and `max_rss_mb`", async () => {
    await using short = await world({ keep: "1s" });
    await short.say("pid");
    expect(listWorkerProcesses(short.worker.id).length).toBeGreaterThan(0);
    await waitUntil("it has gone", () => hasNoProcess(short.app, short.worker.id));

    await using few = await world({ max: 1, max_turns: 2 });
    await few.say("pid");
    const other = await few.app.call("POST /api/local/sessions", { worker_id: few.worker.id });
    await few.say("pid", other);
    expect((await few.say("pid")).result).toMatch(/ 1$/);
    expect((await few.say("pid")).result).toMatch(/ 2$/);
    expect((await few.say("pid")).result).toMatch(/ 1$/);

    // The evicted process has ended before another one gets its session.
    await few.say("pid");
    expect((await few.say("slow")).result).toMatch(/ 1$/);
    await few.say("pid", other);
    expect((await few.say("recall")).result).toMatch(/slow \| left \| recall$/);

    await using small = await world({ max_rss_mb: 1 });
    await small.say("pid");
    await waitUntil("it has gone", () => hasNoProcess(small.app, small.worker.id));
  }, 180_000);

  it("shares one limit by memory among all engines without `warm` settings", async () => {
    await using one = await world(null, {}, 8e9);
    expect(await one.app.call("GET /api/engines/claude")).toMatchObject({ stays_open: 2 });
    expect(await one.app.call("GET /api/engines/gemini")).toMatchObject({ stays_open: 0 });
    const { id } = await one.app.call("POST /api/workers", { name: "Bob", engine: "other" });
    const [his, more] = [
      await one.app.call("POST /api/local/sessions", { worker_id: id }),
      await one.app.call("POST /api/local/sessions", { worker_id: id }),
    ];
    const hers = readPid(await one.say("pid"));
    await one.say("pid", his);
    expect((await one.say("pid")).result).toBe(`${hers} 2`);
    await one.say("pid", more);
    expect((await one.say("pid")).result).toBe(`${hers} 3`);
    expect((await one.say("pid", his)).result).toMatch(/ 1$/);
    expect((await one.say("pid", more)).result).toMatch(/ 1$/);

    for (const [warm, memoryBytes] of [[{ max: 0 }, 8e9], [null, 7.9e9]] as const) {
      await using none = await world(warm, {}, memoryBytes);
      expect(await none.app.call("GET /api/engines/claude")).toMatchObject({ stays_open: 0 });
    }
  }, 180_000);

  it("ends with its worker, and with the service", async () => {
    const one = await world();
    await one.say("pid");
    expect(listWorkerProcesses(one.worker.id).length).toBeGreaterThan(0);
    await one.app.call(`DELETE /api/workers/${one.worker.id}`);
    expect(listWorkerProcesses(one.worker.id)).toEqual([]);
    const { id } = await one.app.call("POST /api/workers", { name: "Bob" });
    await one.say("pid", await one.app.call("POST /api/local/sessions", { worker_id: id }));
    expect(listWorkerProcesses(id).length).toBeGreaterThan(0);
    await one[Symbol.asyncDispose]();
    expect(listWorkerProcesses(id)).toEqual([]);
  });

  it("has ended when its worker is deleted, also while it is ending [CHD-15]", async () => {
    await using one = await world({ keep: "1s" });
    await one.say("slow");
    await leaving(one);
    await one.app.call(`DELETE /api/workers/${one.worker.id}`);
    expect(listWorkerProcesses(one.worker.id)).toEqual([]);
  });

  it("does not delay a cancelled run while it is ending [CHD-15]", async () => {
    await using one = await world({ keep: "1s" });
    await one.say("slower");
    await leaving(one);
    await one.send("pid");
    await waitUntil("the next is claimed", async () => (await one.last()).instruction === "pid");
    await one.app.call(`POST /api/executions/${(await one.last()).id}/cancel`, {});
    expect((await one.say("recall")).result).toBe("slower | recall");
  });

  it("is a single process per conversation, also after two parallel runs in two directories [CHD-15]", async () => {
    await using one = await world();
    const folder = await Deno.makeTempDir();
    const link = async (name: string) => {
      await Deno.remove(join(folder, "current")).catch(() => {});
      await Deno.symlink(join(folder, name), join(folder, "current"));
    };
    for (const name of ["5", "6"]) await Deno.mkdir(join(folder, name));
    await link("5");
    const worker = await one.app.call("POST /api/workers", {
      name: "Bob",
      work_dir: join(folder, "current"),
    });
    const his = await one.app.call("POST /api/local/sessions", { worker_id: worker.id });
    await one.say("pid", his);
    const alone = listWorkerProcesses(worker.id).length;
    await one.send("bash sleep 2", his);
    await waitUntil("it works", async () => (await one.last()).status === "running");
    await link("6");
    await one.send("cwd", his);
    await waitUntil("the second is done first", async () => {
      const { instruction, status } = await one.last();
      return instruction === "cwd" && status === "completed";
    });
    expect(listWorkerProcesses(worker.id).length).toBeGreaterThan(alone);
    await one.app.settle();
    await waitUntil("one of them stays", () => listWorkerProcesses(worker.id).length === alone);
    await Deno.remove(folder, { recursive: true });
  });

  it("ends when its program is missing", async () => {
    await using one = await world();
    await one.say("pid");
    await Deno.remove(join(one.app.dataDir, "claude"));
    expect(await one.say("pid")).toMatchObject({ status: "failed", failure: "spawn_failed" });
    expect(listWorkerProcesses(one.worker.id)).toEqual([]);
  });

  it("leaves no process behind when a turn cannot start", async () => {
    await using one = await world();
    await one.say("pid");
    const runs = join(one.app.dataDir, "runs");
    // The service may be removing the directory of the first turn.
    await waitUntil("its files are gone", () => {
      for (const { name } of Deno.readDirSync(runs)) {
        rmSync(join(runs, name), { recursive: true, force: true });
      }
      return [...Deno.readDirSync(runs)].length === 0;
    });
    expect(await one.say("pid")).toMatchObject({ status: "failed", failure: "spawn_failed" });
    expect(listWorkerProcesses(one.worker.id)).toEqual([]);
    expect((await one.say("recall")).result).toBe("pid | recall");
  });

  it("is refused for an engine that ends after each turn", async () => {
    const { loadConfig } = await import("../../src/config/schema.ts");
    const file = await Deno.makeTempFile({ suffix: ".yaml" });
    await Deno.writeTextFile(file, "engines: { gemini: { warm: {} } }\n");
    await expect(loadConfig(file, {})).rejects.toThrow(/engines\.gemini\.warm: gemini ends after each turn/);
    await Deno.writeTextFile(file, "engines: { gemini: { warm: { max: 0 } } }\n");
    expect((await loadConfig(file, {})).config.engines.gemini).toMatchObject({ warm: { max: 0 } });
    await Deno.remove(file);
  });
});

/** Waits until the process of the first conversation is leaving. */
async function leaving({ app, worker }: Awaited<ReturnType<typeof world>>): Promise<void> {
  const state = join(app.dataDir, "state", worker.id, "claude");
  await waitUntil(
    "it is leaving",
    () => [...Deno.readDirSync(state)].some(({ name }) => name.endsWith(".leaving")),
  );
}
