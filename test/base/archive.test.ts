import { createHash } from "node:crypto";
import { join } from "node:path";
import { packTar } from "modern-tar";
import { describe, expect, it } from "vitest";
import { type ArchiveFile, listFilesBelow, packArchive, unpackArchive } from "../../src/base/archive.ts";
import { createTempDir } from "../harness/service/process.ts";

async function* yieldAll(files: ArchiveFile[]): AsyncGenerator<ArchiveFile> {
  yield* files;
}

describe("packArchive and unpackArchive", () => {
  it("round-trip every file, with odd names, empty and large ones, in a form that tar reads", async () => {
    await using folder = await createTempDir();
    const from = join(folder.path, "from", "deep", "er");
    await Deno.mkdir(from, { recursive: true });
    const names = ["plain.txt", "with space and ü.txt", "empty", `long-${"x".repeat(180)}`];
    for (const name of names) await Deno.writeTextFile(join(from, name), name === "empty" ? "" : name);
    await Deno.writeFile(join(from, "large"), new Uint8Array(3_000_001).fill(7));
    await Deno.symlink("/etc/passwd", join(from, "link"));
    let finished: Error | null | undefined;
    const stream = await packArchive(listFilesBelow(join(folder.path, "from"), "logs"), (fault) => {
      finished = fault;
      return Promise.resolve();
    });
    const file = join(folder.path, "a.tar");
    await Deno.writeFile(file, stream);
    expect(finished).toBeNull();
    const to = join(folder.path, "to");
    await Deno.mkdir(to);
    const found = await unpackArchive((await Deno.open(file)).readable, to);
    expect(found.sort()).toEqual([...names, "large"].map((name) => `logs/deep/er/${name}`).sort());
    for (const name of [...names, "large"]) {
      expect(await Deno.readFile(join(to, "logs/deep/er", name))).toEqual(
        await Deno.readFile(join(from, name)),
      );
    }
    const { code } = await new Deno.Command("sh", {
      args: ["-ec", `mkdir x; cd x; tar xf ${file}; sha256sum --quiet -c SHA256SUMS`],
      cwd: folder.path,
    }).output();
    expect(code).toBe(0);
  });

  it("skip a missing file, and pack a growing one with its initial size", async () => {
    await using folder = await createTempDir();
    const growing = join(folder.path, "growing");
    await Deno.writeTextFile(growing, "x".repeat(200_000));
    const files: ArchiveFile[] = [
      { name: "gone", content: { path: join(folder.path, "none") } },
      { name: "growing", content: { path: growing } },
      { name: "text", content: { text: "words" } },
    ];
    const stream = await packArchive(yieldAll(files), () => Promise.resolve());
    await Deno.writeTextFile(growing, "y".repeat(1_000), { append: true });
    const to = join(folder.path, "to");
    await Deno.mkdir(to);
    expect(await unpackArchive(stream, to)).toEqual(["growing", "text"]);
    expect((await Deno.stat(join(to, "growing"))).size).toBeGreaterThanOrEqual(200_000);
  });

  it("refuse paths outside of the folder, and write nothing there", async () => {
    await using folder = await createTempDir();
    for (
      const name of [
        "../out",
        "/out",
        "a/../../out",
        "a//out",
        "./out",
        "a/.",
        "..",
        "a\\..\\out",
        "a\nb",
        "a/",
      ]
    ) {
      const body = new TextEncoder().encode("x");
      const sums = `${createHash("sha256").update(body).digest("hex")}  ${name}\n`;
      const tar = await packTar([
        { header: { name, size: 1, type: "file" }, body },
        { header: { name: "SHA256SUMS", size: sums.length, type: "file" }, body: sums },
      ]);
      const to = join(folder.path, "to");
      await Deno.mkdir(to);
      await expect(unpackArchive(new Blob([tar]).stream(), to), JSON.stringify(name)).rejects.toThrow(
        /which no backup contains/,
      );
      await Deno.remove(to, { recursive: true });
      expect([...Deno.readDirSync(folder.path)]).toEqual([]);
    }
  });

  it("report to the packer that the reader stopped", async () => {
    await using folder = await createTempDir();
    const large = join(folder.path, "large");
    await Deno.writeFile(large, new Uint8Array(40_000_000));
    const finished = Promise.withResolvers<Error | null>();
    const files: ArchiveFile[] = [{ name: "large", content: { path: large } }];
    const stream = await packArchive(yieldAll(files), (fault) => Promise.resolve(finished.resolve(fault)));
    const reader = stream.getReader();
    await reader.read();
    await reader.cancel();
    expect(await finished.promise).toBeInstanceOf(Error);
  });
});
