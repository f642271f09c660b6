import { join } from "node:path";
import { describe, expect, it } from "vitest";
import {
  buildLaunch,
  detectIsolation,
  findMarked,
  type Isolation,
  sweep,
} from "../../src/engine/process/isolation.ts";
import { createTempDir } from "../harness/service/process.ts";
import { waitUntil } from "../harness/wait.ts";

const best = await detectIsolation();
const LEVELS: Isolation[] = best === "namespace" ? ["namespace", "group"] : ["group"];
const ORPHAN = new URL("../harness/fakes/orphan.ts", import.meta.url).pathname;

/** Starts a foreign process with this environment. The process lives until the test disposes of it. */
function bystander(env: Record<string, string>): { alive: () => Promise<boolean> } & AsyncDisposable {
  const child = new Deno.Command("/bin/sleep", { args: ["300"], clearEnv: true, env }).spawn();
  let ended = false;
  void child.status.then(() => ended = true);
  return {
    async alive() {
      await new Promise((resolve) => setTimeout(resolve, 5));
      return !ended;
    },
    async [Symbol.asyncDispose]() {
      if (!ended) child.kill("SIGKILL");
      await child.status;
    },
  };
}

describe("sweep [CHD-4]", () => {
  it("ends all processes with the mark and no others, for many processes and similar marks [CHD-4]", async () => {
    const id = crypto.randomUUID();
    await using marked = bystander({ SVC_RUN_ID: id });
    const near = [
      { SVC_RUN_ID: crypto.randomUUID() },
      { SVC_RUN_ID: `${id}0` },
      { SVC_RUN_ID: id.slice(1) },
      { X_SVC_RUN_ID: id },
      { NOTE: `SVC_RUN_ID=${id}` },
      { NOTE: `\nSVC_RUN_ID=${id}` },
      {},
    ];
    await using stack = new AsyncDisposableStack();
    const others = near.map((env) => stack.use(bystander(env)));
    expect(await sweep(new Set([id]))).toBe(1);
    expect(await marked.alive()).toBe(false);
    for (const [index, other] of others.entries()) {
      expect([near[index], await other.alive()]).toEqual([near[index], true]);
    }
  });

  it("ends no process for an empty mark", async () => {
    await using other = bystander({ SVC_RUN_ID: "" });
    expect(await sweep(new Set())).toBe(0);
    expect(await other.alive()).toBe(true);
  });
});

describe.each(LEVELS)("a killed server with runs under %s [CHD-2, CHD-3]", (level) => {
  it.each(["ignore-term", "setsid-escape-and-stay", "fork-storm-and-stay"])(
    "leaves no process alive: %s [CHD-3]",
    async (mode) => {
      const runId = crypto.randomUUID();
      const server = new Deno.Command(Deno.execPath(), {
        args: ["run", "-A", ORPHAN, level, runId, mode],
        stdout: "piped",
        stderr: "inherit",
      }).spawn();
      const reader = server.stdout.getReader();
      const { value } = await reader.read();
      expect(new TextDecoder().decode(value)).toContain("ready");
      expect((await findMarked(new Set([runId]))).length).toBeGreaterThan(3);
      server.kill("SIGKILL");
      const killedAt = performance.now();
      await server.status;
      while (
        (await findMarked(new Set([runId]))).length > 0 && performance.now() - killedAt < 30_000
      ) {
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
      expect(await findMarked(new Set([runId]))).toEqual([]);
      expect(performance.now() - killedAt).toBeLessThan(30_000);
      await reader.cancel();
    },
  );
});

it("a kill of the server before the watcher of a group has its trap leaves no process alive [CHD-3]", async () => {
  await using folder = await createTempDir();
  const slow = join(folder.path, "setpriv");
  const launch = buildLaunch("group", 0o022, "/bin/sh", ["-c", "sleep 600 & echo ready; wait"]);
  const at = launch.args.findLastIndex((word) => word.endsWith("/setpriv"));
  await Deno.writeTextFile(slow, `#!/bin/sh\nsleep 0.5\nexec ${launch.args[at]} "$@"\n`, { mode: 0o755 });
  const runId = crypto.randomUUID();
  const child = new Deno.Command(launch.command, {
    args: launch.args.with(at, slow),
    env: { SVC_RUN_ID: runId },
    stdout: "piped",
  }).spawn();
  const reader = child.stdout.getReader();
  expect(new TextDecoder().decode((await reader.read()).value)).toContain("ready");
  child.kill("SIGKILL");
  await child.status;
  await waitUntil("all have ended", async () => (await findMarked(new Set([runId]))).length === 0);
  await reader.cancel();
});
