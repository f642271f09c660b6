import { join } from "node:path";
import { expect, it } from "vitest";
import { openApp } from "../harness/service/app.ts";
import { createTempDir } from "../harness/service/process.ts";
import { ctl } from "../harness/terminal.ts";

it("--token-file creates no token if the file is not writable, and leaves no file if the server refuses (contract 9, contract 18)", async () => {
  await using app = await openApp();
  await using folder = await createTempDir();
  const commands = [
    ["runner", "add", "r1"],
    ["token", "create", "--name", "r1", "--scopes", "read:tasks"],
  ];
  for (const command of commands) {
    const to = (name: string) => ctl(app, [...command, "--token-file", join(folder.path, name)]);
    expect(await to("nowhere/token")).toMatchObject({
      code: 2,
      err: expect.stringContaining("cannot write"),
    });
    expect(await to("token")).toMatchObject({ code: 0, out: expect.not.stringContaining("eyJ") });
    const path = join(folder.path, "token");
    expect(await Deno.readTextFile(path)).toMatch(/^eyJ.*\n$/);
    expect(((await Deno.stat(path)).mode ?? 0) & 0o777).toBe(0o600);
    expect(await to("token")).toMatchObject({ code: 2, err: expect.stringContaining("already exists") });
    expect((await to("other")).code).toBe(5);
    expect([...Deno.readDirSync(folder.path)].map(({ name }) => name)).toEqual(["token"]);
    await Deno.remove(path);
  }
});

it("a timeout names the missing runner, and doctor reports no engine of this machine (contract 8.17, contract 18)", async () => {
  await using app = await openApp();
  const worker = await app.call("POST /api/workers", { name: "Far", engine: "elsewhere", runs_on: ["gpu"] });
  const ran = await ctl(app, `run ${worker.id} hello --timeout 2s`);
  expect(ran.code).toBe(124);
  expect(ran.err).toContain("is still pending: no runner with the labels gpu exists");
  const { checks } = JSON.parse((await ctl(app, "system doctor --json")).out);
  const detail = (name: string) => checks.find((check: { name: string }) => check.name === name);
  expect(detail("workers")).toMatchObject({ status: "ok" });
  expect(JSON.stringify(detail("queue"))).toContain("1 are blocked");
});
