import { join } from "node:path";
import { describe, expect, it } from "vitest";
import {
  findReplaceable,
  listMounts,
  planRemoval,
  removePlanned,
  ReplacedError,
} from "../../src/files/removal.ts";
import { createTempDir } from "../harness/service/process.ts";

async function createVictim(base: string): Promise<string> {
  await Deno.mkdir(join(base, "other/dir"), { recursive: true });
  const canary = join(base, "other/dir/canary");
  await Deno.writeTextFile(canary, "alive");
  await Deno.mkdir(join(base, "mine/dir"), { recursive: true });
  return canary;
}

describe("remove (contract 3, Worker)", () => {
  it("deletes the planned entry with its contents", async () => {
    await using folder = await createTempDir();
    await Deno.mkdir(join(folder.path, "mine/dir/deep"), { recursive: true });
    const plan = planRemoval(join(folder.path, "mine/dir"));
    expect(plan).not.toBeNull();
    if (plan !== null) await removePlanned(plan);
    expect([...Deno.readDirSync(join(folder.path, "mine"))]).toEqual([]);
  });

  it("deletes nothing when a link has replaced a directory above", async () => {
    await using folder = await createTempDir();
    const canary = await createVictim(folder.path);
    const plan = planRemoval(join(folder.path, "mine/dir"));
    await Deno.rename(join(folder.path, "mine"), join(folder.path, "away"));
    await Deno.symlink(join(folder.path, "other"), join(folder.path, "mine"));
    if (plan !== null) await expect(removePlanned(plan)).rejects.toThrow();
    expect(await Deno.readTextFile(canary)).toBe("alive");
  });

  it("deletes nothing when another directory has replaced a directory above", async () => {
    await using folder = await createTempDir();
    const plan = await createVictim(folder.path).then(() => planRemoval(join(folder.path, "mine/dir")));
    await Deno.rename(join(folder.path, "mine"), join(folder.path, "away"));
    await Deno.rename(join(folder.path, "other"), join(folder.path, "mine"));
    if (plan !== null) await expect(removePlanned(plan)).rejects.toThrow(ReplacedError);
    expect(await Deno.readTextFile(join(folder.path, "mine/dir/canary"))).toBe("alive");
  });

  it("deletes nothing when its path resolves differently, even to the same entry", async () => {
    await using folder = await createTempDir();
    const top = join(folder.path, "top");
    await Deno.mkdir(join(top, "mine/dir"), { recursive: true });
    const plan = planRemoval(join(top, "mine/dir"));
    await Deno.rename(top, join(folder.path, "away"));
    if (plan !== null) await expect(removePlanned(plan)).rejects.toThrow(ReplacedError);
    await Deno.symlink(join(folder.path, "away"), top);
    if (plan !== null) await expect(removePlanned(plan)).rejects.toThrow(ReplacedError);
    expect(plan).not.toBeNull();
    expect((await Deno.stat(join(folder.path, "away/mine/dir"))).isDirectory).toBe(true);
    await Deno.remove(top);
    await Deno.mkdir(top);
    for (
      const make of [
        () => Deno.writeTextFile(join(top, "mine"), ""),
        () => Deno.symlink("none", join(top, "mine")),
      ]
    ) {
      await make();
      if (plan !== null) await expect(removePlanned(plan)).rejects.toThrow(ReplacedError);
      await Deno.remove(join(top, "mine"));
    }
  });

  it("deletes a link, not its target", async () => {
    await using folder = await createTempDir();
    const canary = await createVictim(folder.path);
    await Deno.symlink(join(folder.path, "other/dir"), join(folder.path, "link"));
    const plan = planRemoval(join(folder.path, "link"));
    if (plan !== null) await removePlanned(plan);
    expect(planRemoval(join(folder.path, "link"))).toBeNull();
    expect(await Deno.readTextFile(canary)).toBe("alive");
  });
});

describe("listMounts()", () => {
  const TABLE = [
    "22 27 0:21 / / rw - ext4 /dev/a rw",
    "23 27 8:1 /data/x /srv/a\\040b/deep rw - ext4 /dev/a rw",
    "24 27 8:1 / /srv/ab rw - tmpfs none rw",
  ].join("\n");

  it("finds mounts at and below a path, bind mounts and blanks in names included", () => {
    expect(listMounts("/srv/a b", TABLE)).toEqual(["/srv/a b/deep"]);
    expect(listMounts("/srv/ab", TABLE)).toEqual(["/srv/ab"]);
    expect(listMounts("/srv/a", TABLE)).toEqual([]);
  });
});

describe("findReplaceable()", () => {
  it("returns a directory that other users can write, and trusts one with the sticky bit", async () => {
    await using folder = await createTempDir();
    const open = join(folder.path, "open");
    await Deno.mkdir(join(open, "inner"), { recursive: true });
    expect(findReplaceable(join(open, "inner"))).toBeNull();
    await Deno.chmod(open, 0o777);
    expect(findReplaceable(join(open, "inner"))).toBe(Deno.realPathSync(open));
    await Deno.chmod(open, 0o1777);
    expect(findReplaceable(join(open, "inner"))).toBeNull();
  });
});
