import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { endOpenProcesses } from "../../src/engine/left_processes.ts";
import { openWarmService } from "../harness/service/open_world.ts";
import { createTempDir } from "../harness/service/process.ts";

/** A service with an agent that stays open, next to a directory that the agent wants to reach through the service. */
async function openWorld() {
  const outside = await createTempDir();
  const service = await openWarmService();
  await Deno.writeTextFile(join(outside.path, "canary"), "canary");
  const check = async () => {
    expect([...Deno.readDirSync(outside.path)].map(({ name }) => name)).toEqual(["canary"]);
    expect(await Deno.readTextFile(join(outside.path, "canary"))).toBe("canary");
  };
  const end = async () => {
    await service[Symbol.asyncDispose]();
    await outside[Symbol.asyncDispose]();
  };
  return { ...service, outside: outside.path, check, [Symbol.asyncDispose]: end };
}

const INPUT = '"$(dirname "$SVC_TOKEN_FILE")"';

describe("files of a run that its agent has replaced (decision 0035)", () => {
  it.each<[string, (outside: string) => string, string]>([
    [
      "a file",
      (outside) => `ln -sf ${outside}/canary ${INPUT}/context.json`,
      "input/context.json is a symbolic link",
    ],
    [
      "a file, by a hard link",
      (outside) => `rm ${INPUT}/context.json; ln ${outside}/canary ${INPUT}/context.json`,
      "input/context.json is a file with several hard links",
    ],
    [
      "their directory",
      (outside) => `mv ${INPUT} ${INPUT}.old; ln -s ${outside} ${INPUT}`,
      "input is a symbolic link",
    ],
    ["TMPDIR", (outside) => `rm -r "$TMPDIR"; ln -s ${outside} "$TMPDIR"`, "tmp is a symbolic link"],
    [
      "the private directory",
      (outside) => `p=$(dirname ${INPUT}); mv $p $p.old; ln -s ${outside} $p`,
      " is a symbolic link",
    ],
  ])("fail the next turn with their path: %s", async (_, attack, words) => {
    await using one = await openWorld();
    await one.say(`bash ${attack(one.outside)}`);
    const run = await one.say("pid");
    expect(run).toMatchObject({ status: "failed", failure: "isolation" });
    expect(run.error).toContain(join(one.app.dataDir, "runs"));
    expect(run.error).toContain(words);
    await one.check();
    // The failed run ended the process, so the next one has new files.
    expect(await one.say("pid")).toMatchObject({ status: "completed" });
    await one.check();
  }, 180_000);

  it(
    "fail the next run when the agent has replaced the engine's state, and no removal follows its links",
    async () => {
      await using one = await openWorld();
      const { app, worker, outside } = one;
      await one.say(`bash ln -s ${outside} "$CLAUDE_CONFIG_DIR/link"; mkdir -p "$CLAUDE_CONFIG_DIR/a/b"`);
      await one.say(
        `bash mv "$CLAUDE_CONFIG_DIR" "$CLAUDE_CONFIG_DIR.old"; ln -s ${outside} "$CLAUDE_CONFIG_DIR"`,
      );
      const other = await app.call("POST /api/local/sessions", { worker_id: worker.id });
      const run = await one.say("pid", other);
      expect(run).toMatchObject({ status: "failed", failure: "isolation" });
      expect(run.error).toContain(`${join(app.dataDir, "state", worker.id, "claude")} is a symbolic link`);
      await one.check();
      await app.call(`DELETE /api/workers/${worker.id}`);
      await one.check();
      expect([...Deno.readDirSync(join(app.dataDir, "state"))].map(({ name }) => name)).not.toContain(
        worker.id,
      );
    },
    180_000,
  );

  it("are removed at the next start, which does not wait for them", async () => {
    await using folder = await createTempDir();
    const runs = join(folder.path, "runs");
    const left = join(runs, crypto.randomUUID());
    await Deno.mkdir(join(left, "tmp/a"), { recursive: true });
    await Deno.writeTextFile(join(folder.path, "canary"), "canary");
    await Deno.symlink(folder.path, join(left, "tmp/link"));
    const removeLeft = await endOpenProcesses(runs);
    expect([...Deno.readDirSync(runs)].length).toBe(1);
    await removeLeft();
    expect([...Deno.readDirSync(runs)]).toEqual([]);
    expect(await Deno.readTextFile(join(folder.path, "canary"))).toBe("canary");
    await (await endOpenProcesses(join(folder.path, "none")))();
  });
});
