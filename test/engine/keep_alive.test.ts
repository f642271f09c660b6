import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { buildKeepAlive, findUsableMemory } from "../../src/boot/host_limits.ts";
import { createTempDir } from "../harness/service/process.ts";

const GIB = 1024 ** 3;
const MACHINE = 64 * GIB;
// A cgroup of version 1 without a limit reports this number.
const UNLIMITED = "9223372036854771712\n";

describe("processes of engines without `warm` settings (contract 19.1)", () => {
  it.each([[0, null], [7.9e9, null], [8e9, 2], [7.7 * GIB, 2], [24e9, 6], [1e13, 32]])(
    "with %d bytes of memory: %s processes",
    (bytes, max) => {
      expect(buildKeepAlive(bytes)?.warm.max ?? null).toBe(max);
    },
  );

  it("has the same limits as configured engines", () => {
    expect(buildKeepAlive(8e9)?.warm).toEqual({
      ...{ keep: 600_000, max: 2, max_turns: 50 },
      ...{ max_age: 21_600_000, max_rss_mb: 1_024 },
    });
  });

  it.skipIf(Deno.build.os !== "linux").each<[string, string, Record<string, string>, number]>([
    ["without groups", "", {}, MACHINE],
    [
      "without a limit",
      "0::/system.slice/svc.service\n",
      { "system.slice/svc.service/memory.max": "max\n" },
      MACHINE,
    ],
    ["with one of its own", "0::/a/b\n", { "a/b/memory.max": "1073741824\n", "a/memory.max": "max\n" }, GIB],
    ["with one above it", "0::/a/b\n", { "a/b/memory.max": "max\n", "a/memory.max": "1073741824\n" }, GIB],
    ["in a container", "0::/\n", { "memory.max": "1073741824\n" }, GIB],
    ["with more than there is", "0::/\n", { "memory.max": `${100 * GIB}\n` }, MACHINE],
    [
      "in a container, in groups of the first version",
      "5:cpu,cpuacct:/docker/x\n4:memory:/docker/x\n",
      { "memory/memory.limit_in_bytes": "1073741824\n", "memory.max": "1\n" },
      GIB,
    ],
    ["in those without a limit", "4:memory:/\n", { "memory/memory.limit_in_bytes": UNLIMITED }, MACHINE],
  ])("counts only the memory that the service may use: %s", async (_words, groups, limits, bytes) => {
    await using folder = await createTempDir();
    const files = { "proc/self/cgroup": groups };
    for (const [path, text] of Object.entries(limits)) {
      Object.assign(files, { [`sys/fs/cgroup/${path}`]: text });
    }
    for (const [path, text] of Object.entries(files)) {
      await Deno.mkdir(dirname(join(folder.path, path)), { recursive: true });
      await Deno.writeTextFile(join(folder.path, path), text);
    }
    expect(findUsableMemory(MACHINE, folder.path)).toBe(bytes);
  });
});
