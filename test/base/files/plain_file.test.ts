import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { UnsafePathError } from "../../../src/base/files/open_directory.ts";
import {
  listPlain,
  makePlainDir,
  readPlain,
  readPlainEnd,
  removePlain,
  replacePlain,
  writePlain,
} from "../../../src/base/files/plain_file.ts";
import { createTempDir } from "../../harness/service/process.ts";

const MAX_BYTES = 100;
const CANARY = "the operator's";

/** A root with a file `dir/file`, next to a directory that an agent must not reach through it. */
async function openWorld() {
  const folder = await createTempDir();
  const root = join(folder.path, "root");
  const outside = join(folder.path, "outside");
  await Deno.mkdir(join(root, "dir"), { recursive: true });
  await Deno.mkdir(outside);
  await Deno.writeTextFile(join(outside, "file"), CANARY);
  await Deno.writeTextFile(join(root, "dir/file"), "own");
  const at = (path: string) => ({ root, path: join(root, path) });
  return { root, outside, at, [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose]() };
}

type World = Awaited<ReturnType<typeof openWorld>>;

async function run(command: string, ...args: string[]): Promise<void> {
  const { success } = await new Deno.Command(command, { args, stderr: "null" }).output();
  if (!success) throw new Error(`${command} failed`);
}

const SOCKET = "socket(S, AF_UNIX, SOCK_STREAM, 0); bind(S, pack_sockaddr_un($ARGV[0])) or die";

/** Attacks on `dir/file` and on `dir`: the words of the error, and the attack. */
const ATTACKS: Record<string, [string, (world: World) => Promise<void>]> = {
  "a link to a file": ["a symbolic link", async ({ root, outside }) => {
    await Deno.remove(join(root, "dir/file"));
    await Deno.symlink(join(outside, "file"), join(root, "dir/file"));
  }],
  "a link to nothing": ["a symbolic link", async ({ root, outside }) => {
    await Deno.remove(join(root, "dir/file"));
    await Deno.symlink(join(outside, "new"), join(root, "dir/file"));
  }],
  "a link to a directory on the way": ["a symbolic link", async ({ root, outside }) => {
    await Deno.remove(join(root, "dir"), { recursive: true });
    await Deno.symlink(outside, join(root, "dir"));
  }],
  "a link inside the root on the way": ["a symbolic link", async ({ root }) => {
    await Deno.rename(join(root, "dir"), join(root, "real"));
    await Deno.symlink("real", join(root, "dir"));
  }],
  "a hard link": ["several hard links", async ({ root, outside }) => {
    await Deno.remove(join(root, "dir/file"));
    await Deno.link(join(outside, "file"), join(root, "dir/file"));
  }],
  "a pipe": ["a pipe", async ({ root }) => {
    await Deno.remove(join(root, "dir/file"));
    await run("mkfifo", join(root, "dir/file"));
  }],
  "a pipe on the way": ["a pipe", async ({ root }) => {
    await Deno.remove(join(root, "dir"), { recursive: true });
    await run("mkfifo", join(root, "dir"));
  }],
  "a socket": ["a socket", async ({ root }) => {
    await Deno.remove(join(root, "dir/file"));
    await run("perl", "-MSocket", "-e", SOCKET, join(root, "dir/file"));
  }],
  "a directory": ["a directory", async ({ root }) => {
    await Deno.remove(join(root, "dir/file"));
    await Deno.mkdir(join(root, "dir/file"));
  }],
  "a file on the way": ["a file", async ({ root }) => {
    await Deno.remove(join(root, "dir"), { recursive: true });
    await Deno.writeTextFile(join(root, "dir"), "x");
  }],
};

describe("files that agents can replace (decision 0035)", () => {
  it.each(Object.entries(ATTACKS))("are not used through %s", async (_, [words, attack]) => {
    await using world = await openWorld();
    const file = world.at("dir/file");
    await attack(world);
    const uses: [string, () => unknown][] = [
      ["read", () => readPlain(file, MAX_BYTES)],
      ["read the end", () => readPlainEnd(file, MAX_BYTES)],
      ["write", () => writePlain(file, "changed", 0o600)],
      ["replace", () => replacePlain(file, "changed")],
    ];
    for (const [name, use] of uses) {
      expect(use, name).toThrow(UnsafePathError);
      expect(use, name).toThrow(words);
      expect(use, name).toThrow(world.root);
    }
    expect(await Deno.readTextFile(join(world.outside, "file"))).toBe(CANARY);
    expect([...Deno.readDirSync(world.outside)].map(({ name }) => name)).toEqual(["file"]);
  });

  it("are not created, listed or removed through a link on the way", async () => {
    await using world = await openWorld();
    const { root, outside, at } = world;
    await Deno.remove(join(root, "dir"), { recursive: true });
    await Deno.symlink(outside, join(root, "dir"));
    expect(() => makePlainDir(at("dir/new"))).toThrow(UnsafePathError);
    expect(() => removePlain(at("dir/file"))).toThrow(UnsafePathError);
    await expect(listPlain(at("dir"))).rejects.toThrow(UnsafePathError);
    expect(() => readPlain({ root, path: join(root, "../outside/file") }, MAX_BYTES)).toThrow("is not below");
    expect([...Deno.readDirSync(outside)].map(({ name }) => name)).toEqual(["file"]);
  });

  it("never opens a device", async ({ skip }) => {
    await using world = await openWorld();
    await Deno.remove(join(world.root, "dir/file"));
    const made = await new Deno.Command("mknod", {
      args: [join(world.root, "dir/file"), "c", "1", "5"],
      stderr: "null",
    }).output();
    if (!made.success) skip("only root creates devices");
    expect(() => readPlain(world.at("dir/file"), MAX_BYTES)).toThrow("a device");
    expect(() => writePlain(world.at("dir/file"), "x", 0o600)).toThrow("a device");
  });

  it("are written and read where nothing is in the way, also with strange names and below a linked root", async () => {
    await using world = await openWorld();
    const link = join(world.outside, "linked");
    await Deno.symlink(world.root, link);
    for (const root of [world.root, link]) {
      const place = { root, path: join(root, "new/deep/a\nname") };
      makePlainDir({ root, path: join(root, "new/deep") });
      writePlain(place, "hello", 0o600);
      writePlain(place, "hällo", 0o600);
      expect([
        readPlain(place, 6),
        readPlainEnd(place, 3),
        readPlain({ ...place, path: `${place.path}2` }, 6),
      ])
        .toEqual(["hällo", { text: "llo", isWhole: false }, null]);
      expect(() => readPlain(place, 5)).toThrow("more than 5 bytes");
      replacePlain(place, "other");
      expect(readPlain(place, 6)).toBe("other");
      expect(((await Deno.stat(place.path)).mode ?? 0) & 0o777).toBe(0o600);
      expect(await listPlain({ root, path: join(root, "new/deep") })).toEqual(["a\nname"]);
      removePlain(place);
      expect(readPlain(place, 6)).toBeNull();
    }
  });

  it("belong to the owner of their directory, where the service is root", async ({ skip }) => {
    if (Deno.build.os !== "linux" || Deno.uid() !== 0) skip("only root gives files away");
    await using world = await openWorld();
    await Deno.chown(join(world.root, "dir"), 65_534, 65_534);
    makePlainDir(world.at("dir/input"));
    writePlain(world.at("dir/input/settings"), "x", 0o600);
    replacePlain(world.at("dir/input/token"), "x");
    for (const name of ["input", "input/settings", "input/token"]) {
      const { uid, gid } = await Deno.stat(join(world.root, "dir", name));
      expect([uid, gid], name).toEqual([65_534, 65_534]);
    }
  });
});
