import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { listWorkerProcesses } from "../harness/model/marked.ts";
import { hasNoProcess, openWarmService, readPid } from "../harness/service/open_world.ts";
import { waitUntil } from "../harness/wait.ts";

describe("the environment of an agent that stays open (contract 19) [CHD-15]", () => {
  it("has the variables of each run, also if the operator set some of them", async () => {
    const file = await Deno.makeTempFile();
    await Deno.writeTextFile(file, "export OWN=mine\n");
    await using one = await openWarmService({}, { env: { BASH_ENV: file, SVC_TOKEN: "stale" } });
    for (let i = 0; i < 2; i++) {
      const run = await one.say("bash echo $OWN $SVC_MESSAGE_ID $SVC_EXECUTION_ID $SVC_TOKEN");
      expect(run.result).toMatch(new RegExp(`^mine ${run.message_id} ${run.id} (?!stale)`));
    }
    expect((await one.say("env SVC_TOKEN")).result).toBe("nothing");
    await Deno.remove(file);
    expect((await one.say("bash echo $OWN $SVC_TOKEN | wc -w")).result).toBe("1");
  });

  it("has the worker's current directory [CHD-15]", async () => {
    await using one = await openWarmService();
    const folder = await Deno.makeTempDir();
    const place = (name: string) => join(folder, name);
    for (const name of ["5", "6"]) await Deno.mkdir(place(name));
    await Deno.symlink(place("5"), place("current"));
    const worker = await one.app.call("POST /api/workers", { name: "Bob", work_dir: place("current") });
    const his = await one.app.call("POST /api/local/sessions", { worker_id: worker.id });
    expect((await one.say("cwd", his)).result).toBe(`${place("5")} 1`);
    expect((await one.say("cwd", his)).result).toBe(`${place("5")} 2`);
    await Deno.remove(place("current"));
    await Deno.symlink(place("6"), place("current"));
    expect((await one.say("cwd", his)).result).toBe(`${place("6")} 1`);
    await Deno.rename(place("6"), place("away"));
    await Deno.mkdir(place("6"));
    expect((await one.say("cwd", his)).result).toBe(`${place("6")} 1`);
    await Deno.remove(folder, { recursive: true });
  });

  it("has the tools of the worker's current scopes", async () => {
    await using one = await openWarmService();
    const first = readPid(await one.say("pid"));
    expect((await one.say("pid")).result).toBe(`${first} 2`);
    await one.app.call(`PUT /api/workers/${one.worker.id}`, { scopes: ["read:tasks"] });
    expect((await one.say("pid")).result).toMatch(/ 1$/);
  });

  it("has a directory for temporary files, also after the agent removed it", async () => {
    await using one = await openWarmService();
    await one.say("bash rm -r $TMPDIR");
    expect((await one.say("bash touch $TMPDIR/x && echo ok")).result).toBe("ok");
  });

  it("ends after its max_age, also while it is idle", async () => {
    await using one = await openWarmService({ keep: "1h", max_age: "2s" });
    await one.say("pid");
    expect(listWorkerProcesses(one.worker.id).length).toBeGreaterThan(0);
    await waitUntil("it has gone", () => hasNoProcess(one.app, one.worker.id));
  });

  it("continues after a deeply nested line [CHD-15]", async () => {
    await using one = await openWarmService();
    expect(await one.say("deep")).toMatchObject({ status: "completed" });
    expect((await one.say("pid")).result).toMatch(/ 2$/);
  });
});
