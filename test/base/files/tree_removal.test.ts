import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { UnsafePathError } from "../../../src/base/files/open_directory.ts";
import { removeTree } from "../../../src/base/files/tree_removal.ts";

const ROUNDS = 150;
// A recursive Deno.remove() crashes its process at about 10,000 levels.
const DEPTH = 12_000;
// Where the system has one, a file system in memory saves a minute.
const MEMORY = "/dev/shm";
const NOBODY = 65_534;

/** A root for `tree`, next to a directory with a canary that no removal may reach. */
async function openWorld() {
  const hasMemory = await Deno.stat(MEMORY).then(({ isDirectory }) => isDirectory, () => false);
  const folder = await Deno.makeTempDir({ prefix: "svc-", ...(hasMemory ? { dir: MEMORY } : {}) });
  const root = join(folder, "root");
  const outside = join(folder, "outside");
  await Deno.mkdir(join(root, "tree"), { recursive: true });
  await Deno.mkdir(outside);
  await Deno.writeTextFile(join(outside, "canary"), "canary");
  return {
    folder,
    root,
    outside,
    tree: { root, path: join(root, "tree") },
    [Symbol.asyncDispose]: () => run("/", "rm", "-rf", folder),
  };
}

const list = (path: string) => [...Deno.readDirSync(path)].map(({ name }) => name);

async function run(cwd: string, program: string, ...args: string[]): Promise<void> {
  const { success, stderr } = await new Deno.Command(program, { args, cwd }).output();
  if (!success) throw new Error(new TextDecoder().decode(stderr));
}

const NESTED = `perl -e 'for (1..${DEPTH}) { mkdir "d"; chdir "d" or die } open F, ">leaf"'`;
const STRANGE = String
  .raw`bad=$(printf '\377\376') && mkdir -p a/b "a/$bad/x" && touch "a/$bad/x/$bad" "a/b/$bad" &&
  touch "$(printf 'two\nlines')" ./-rf && mkfifo a/pipe && ln -s ../../../outside a/link && ln -s loop loop && ln -s / a/b/root`;
const CLOSED = "mkdir -p a/b/c x/y && touch a/b/c/f x/y/f && chmod 0 a/b/c a/b a x/y x .";

// Swaps directories for links to the canary as fast as it can, and fills what was removed again.
const RACER = `
const attempt = (work) => { try { work(); } catch { /* It was removed meanwhile. */ } };
const target = Deno.cwd() + "/outside";
console.log("started");
for (;;) {
  for (const folder of ["root/tree", "root/tree/a", "root/tree/a/b"]) {
    attempt(() => Deno.mkdirSync("root/tree/a/b", { recursive: true }));
    attempt(() => Deno.writeTextFileSync("root/tree/a/b/canary", "x"));
    attempt(() => Deno.symlinkSync(target, "root/link"));
    attempt(() => Deno.renameSync(folder, "root/aside"));
    attempt(() => Deno.renameSync("root/link", folder));
    attempt(() => Deno.statSync(folder));
    attempt(() => Deno.lstatSync(folder).isSymlink && Deno.removeSync(folder));
    attempt(() => Deno.renameSync("root/aside", folder));
  }
}`;

describe("the removal of what an agent has left (decision 0035)", () => {
  it.each<[string, string]>([
    ["thousands of nested directories, at which a recursive removal crashes", NESTED],
    ["pipes, links and names that are not UTF-8", STRANGE],
    ["many files", "for i in $(seq 5000); do : >$i; done"],
  ])("leaves nothing of %s", async (_, script) => {
    await using world = await openWorld();
    await run(world.tree.path, "sh", "-c", script);
    await removeTree(world.tree);
    expect(list(world.root)).toEqual([]);
    expect(list(world.outside)).toEqual(["canary"]);
  }, 300_000);

  it("takes back permissions that the agent has removed", async ({ skip }) => {
    if (Deno.build.os !== "linux") skip("the service changes modes on Linux only");
    await using world = await openWorld();
    if (Deno.uid() !== 0) {
      await run(world.tree.path, "sh", "-c", CLOSED);
      await removeTree(world.tree);
    } else {
      // Root needs no permissions, so another user builds and removes the tree.
      for (const path of [world.folder, world.root, world.tree.path]) await Deno.chown(path, NOBODY, NOBODY);
      const user = ["--reuid", `${NOBODY}`, "--regid", `${NOBODY}`, "--clear-groups", "--"];
      await run(world.tree.path, "setpriv", ...user, "sh", "-c", CLOSED);
      await run(
        "/",
        "setpriv",
        ...user,
        "env",
        `HOME=${world.folder}`,
        `DENO_DIR=${world.folder}`,
        ...evalRemoval(world),
      );
    }
    expect(list(world.root)).toEqual([]);
  });

  it("removes a link instead of its target, and nothing below a linked directory", async () => {
    await using world = await openWorld();
    await Deno.remove(world.tree.path);
    await Deno.symlink(world.outside, world.tree.path);
    const below = { root: world.root, path: join(world.tree.path, "canary") };
    await expect(removeTree(below)).rejects.toThrow(UnsafePathError);
    for (let time = 0; time < 2; time++) await removeTree(world.tree);
    await removeTree({ root: join(world.root, "none"), path: join(world.root, "none/x") });
    expect(list(world.root)).toEqual([]);
    expect(list(world.outside)).toEqual(["canary"]);
  });

  it(
    `does not leave its tree while a process swaps directories for links, ${ROUNDS} times [PTH-2]`,
    async () => {
      await using world = await openWorld();
      const racer = new Deno.Command(Deno.execPath(), {
        args: ["eval", "--no-config", RACER],
        cwd: world.folder,
        stdout: "piped",
        stderr: "null",
      }).spawn();
      try {
        const reader = racer.stdout.getReader();
        await reader.read();
        reader.releaseLock();
        for (let round = 0; round < ROUNDS; round++) {
          // A removal may fail while the process adds files. The canary counts.
          await removeTree(world.tree).catch(() => {});
          expect(list(world.outside), `round ${round}`).toContain("canary");
        }
      } finally {
        racer.kill("SIGKILL");
        await racer.stdout.cancel();
        await racer.status;
      }
      for (const name of list(world.root)) {
        await removeTree({
          root: world.root,
          path: join(world.root, name),
        });
      }
      expect(list(world.root)).toEqual([]);
      expect(list(world.outside)).toContain("canary");
    },
    120_000,
  );
});

function evalRemoval({ tree }: { tree: { root: string; path: string } }): string[] {
  const module = new URL("../../../src/base/files/tree_removal.ts", import.meta.url).href;
  const code = `import { removeTree } from "${module}"; await removeTree(${JSON.stringify(tree)});`;
  return [Deno.execPath(), "eval", "--no-config", code];
}
