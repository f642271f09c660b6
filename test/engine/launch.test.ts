import { join } from "node:path";
import { expect, it } from "vitest";
import type { AgentCommand } from "../../src/engine/protocol/adapter.ts";
import { writeFiles } from "../../src/engine/launch.ts";
import { createTempDir } from "../harness/service/process.ts";

it("settings that an agent has replaced by a pipe fail the run without blocking the service [CHD-6]", async () => {
  await using folder = await createTempDir();
  const stateDir = join(folder.path, "worker/engine");
  const run = { runDir: join(folder.path, "runs/1"), stateDir };
  const path = join(stateDir, "settings.json");
  const settings = (content: (present: string | null) => string) =>
    ({ files: [{ path, content, executable: false }] }) as unknown as AgentCommand;
  writeFiles(settings((present) => `${present}1`), run);
  writeFiles(settings((present) => `${present}2`), run);
  expect(await Deno.readTextFile(path)).toBe("null12");
  await Deno.remove(path);
  await new Deno.Command("mkfifo", { args: [path] }).output();
  expect(() => writeFiles(settings(() => "x"), run)).toThrow(
    expect.objectContaining({ failure: "isolation", message: expect.stringContaining(path) }),
  );
});
