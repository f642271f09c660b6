import { join } from "node:path";
import { expect, it, vi } from "vitest";
import { FAKE_AGENT } from "../harness/fakes/agents.ts";
import { canMountDisk, SmallDisk } from "../harness/service/disk.ts";
import { createTempDir, SVC } from "../harness/service/process.ts";
import { Shell } from "../harness/shell.ts";
import { ROOT } from "../harness/house/tree.ts";
import { findFreePort } from "../harness/service/port.ts";

vi.setConfig({ testTimeout: 900_000 });

const SCRIPT = join(ROOT, "test/journey/shell/ci.sh");
const COMMANDS_MIN = 60;
const mounts = await canMountDisk();

// `.ci/long` runs all three.
const SHELLS = Deno.env.get("SVC_TEST_SHELLS") ?? "bash";

for (const shell of SHELLS.split(",")) {
  const here = await Shell.has(shell);
  it.skipIf(!here)(
    `a CI script of ${COMMANDS_MIN} commands gets the documented exit codes and output (${shell})`,
    async () => {
      await using folder = await createTempDir();
      await using disk = mounts ? await SmallDisk.mount(join(folder.path, "small"), 8) : null;
      const bin = join(folder.path, "bin");
      await Deno.mkdir(bin);
      await Deno.writeTextFile(join(bin, "svc"), `#!/bin/sh\nexec ${SVC.join(" ")} "$@"\n`, { mode: 0o755 });
      await Deno.mkdir(join(folder.path, "here"));
      const { code, stdout, stderr } = await new Deno.Command(shell, {
        args: [SCRIPT],
        cwd: join(folder.path, "here"),
        clearEnv: true,
        env: {
          PATH: `${bin}:${Deno.env.get("PATH") ?? ""}`,
          HOME: Deno.env.get("HOME") ?? "/",
          PORT: String(findFreePort()),
          FAKE_AGENT,
          SMALL: disk?.path ?? "",
        },
        stdin: "null",
      }).output();
      const said = new TextDecoder().decode(stdout);
      const wrong = said.split("\n").filter((line) => line !== "" && !line.startsWith("ok "));
      expect([wrong, new TextDecoder().decode(stderr), code]).toEqual([[], "", 0]);
      expect(said.split("\n").length).toBeGreaterThan(COMMANDS_MIN);
    },
  );
}
