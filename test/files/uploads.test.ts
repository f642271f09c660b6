import { statfsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import {
  describeFileInside,
  IncomingFile,
  isPartial,
  openInside,
  removePartials,
} from "../../src/files/uploads.ts";
import { createTempDir } from "../harness/service/process.ts";

const ID = "01a1fd23-4a4c-746f-99ac-8860e2641168";
const namesIn = (folder: string) => [...Deno.readDirSync(folder)].map(({ name }) => name).sort();

async function storeFile(folder: string, bytes: Uint8Array | string, name = "a.bin") {
  const file = await IncomingFile.open(folder, ID, name);
  await file.write(typeof bytes === "string" ? new TextEncoder().encode(bytes) : bytes);
  return await file.finish();
}

describe("IncomingFile (interface 8) [UPL-4, UPL-5]", () => {
  it("has a hidden name until it is complete, then its own, with all bytes of all parts", async () => {
    await using folder = await createTempDir();
    const uploads = join(folder.path, "uploads", "one");
    const file = await IncomingFile.open(uploads, ID, "note.txt", 10_000);
    expect(namesIn(uploads)).toEqual([`.${ID}.part`]);
    const info = await Deno.stat(join(uploads, `.${ID}.part`));
    expect([(info.mode ?? 0) & 0o777, ((await Deno.stat(uploads)).mode ?? 0) & 0o777]).toEqual([
      0o600,
      0o700,
    ]);
    const parts = ["first ", "x".repeat(4_090), "over the bytes that are examined", ""];
    for (const part of parts) await file.write(new TextEncoder().encode(part));
    const text = parts.join("");
    const hash = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
    expect(await file.digest()).toBe(new Uint8Array(hash).toHex());
    const other = join(folder.path, "uploads", "other");
    const path = join(other, `${ID}-note.txt`);
    expect(await file.finish(other)).toEqual({
      path,
      name: `${ID}-note.txt`,
      original_name: "note.txt",
      size: text.length,
      mime: "text/plain",
    });
    expect(await Deno.readTextFile(path)).toBe(text);
    expect(((await Deno.stat(other)).mode ?? 0) & 0o777).toBe(0o700);
    expect([namesIn(uploads), namesIn(other)]).toEqual([[], [`${ID}-note.txt`]]);
    // A second discard during cleanup changes nothing.
    await file.discard();
    expect(namesIn(other)).toEqual([`${ID}-note.txt`]);
  });

  it("leaves no file when discarded, and never replaces another file", async () => {
    await using folder = await createTempDir();
    const file = await IncomingFile.open(folder.path, ID, "note.txt");
    await expect(IncomingFile.open(folder.path, ID, "note.txt")).rejects.toThrow(Deno.errors.AlreadyExists);
    await file.discard();
    await file.discard();
    expect(namesIn(folder.path)).toEqual([]);
  });

  it("releases its disk space and its descriptor in every case [UPL-2]", async () => {
    await using folder = await createTempDir();
    const { bavail, bsize } = statfsSync(folder.path);
    const most = Math.floor(bavail * bsize * 0.6);
    const open = () =>
      [...Deno.readDirSync("/proc/self/fd")].filter(({ name }) => {
        try {
          return Deno.readLinkSync(`/proc/self/fd/${name}`).includes(folder.path);
        } catch {
          return false;
        }
      }).length;
    const file = await IncomingFile.open(folder.path, ID, "a", 10);
    await expect(IncomingFile.open(folder.path, ID, "a", most)).rejects.toThrow(Deno.errors.AlreadyExists);
    expect(open()).toBe(1);
    await file.discard();
    const second = await IncomingFile.open(folder.path, ID, "a", most);
    await second.finish();
    const third = await IncomingFile.open(folder.path, ID, "b", most);
    await third.discard();
    expect(open()).toBe(0);
  });

  const names: [original: string, name: string][] = [
    ["note.txt", `${ID}-note.txt`],
    ["../../etc/passwd", `${ID}-passwd`],
    ["C:\\\\dir\\\\x.txt", `${ID}-x.txt`],
    ["..", ID],
    ["", ID],
    ["---", ID],
    [".hidden", `${ID}-file.hidden`],
    ["a..b...c", `${ID}-a.b.c`],
    ["Größe é.txt", `${ID}-Gro_e_e.txt`],
    [`${"x".repeat(500)}.txt`, `${ID}-${"x".repeat(72)}.txt`],
  ];
  it("gets a name from its id and the harmless part of the original name", async () => {
    await using folder = await createTempDir();
    for (const [index, [original, name]] of names.entries()) {
      const file = await IncomingFile.open(join(folder.path, String(index)), ID, original);
      expect([original, (await file.finish()).name]).toEqual([original, name]);
    }
  });

  it("gets its type from its bytes, not from its name", async () => {
    await using folder = await createTempDir();
    const png = new Uint8Array([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 13, 73, 72, 68, 82]);
    const cases: [bytes: Uint8Array | string, mime: string][] = [
      ["words", "text/plain"],
      ["", "application/octet-stream"],
      [new Uint8Array([97, 0, 98]), "application/octet-stream"],
      [new Uint8Array([0xff, 0xfe, 0xfd]), "application/octet-stream"],
      [png, "image/png"],
    ];
    for (const [index, [bytes, mime]] of cases.entries()) {
      const { path, mime: found } = await storeFile(join(folder.path, String(index)), bytes);
      const again = await describeFileInside(join(folder.path, String(index)), path);
      expect([index, found, again?.mime]).toEqual([index, mime, mime]);
    }
  });
});

describe("openInside (interface 8) [PTH-1]", () => {
  it("opens plain files of the folder, at any depth and by a link that stays inside", async () => {
    await using folder = await createTempDir();
    const { path } = await storeFile(join(folder.path, "in"), "words");
    await Deno.symlink(path, join(folder.path, "in", "link"));
    await storeFile(join(folder.path, "in", "deep"), "more");
    for (const name of [`${ID}-a.bin`, "link", `deep/${ID}-a.bin`]) {
      const found = await openInside(join(folder.path, "in"), join(folder.path, "in", name));
      expect([name, found?.size]).toEqual([name, name.startsWith("deep") ? 4 : 5]);
      found?.file.close();
    }
    const real = await Deno.realPath(path);
    expect(await describeFileInside(join(folder.path, "in"), path)).toEqual({
      path: real,
      name: `${ID}-a.bin`,
      original_name: `${ID}-a.bin`,
      size: 5,
      mime: "text/plain",
    });
  });

  it("returns null for everything else", async () => {
    await using folder = await createTempDir();
    const inside = join(folder.path, "in");
    await storeFile(inside, "words");
    await storeFile(join(folder.path, "inner"), "secret");
    await Deno.mkdir(join(inside, "directory"));
    await Deno.writeTextFile(join(inside, ".x.part"), "half");
    await Deno.symlink(join(folder.path, "inner", `${ID}-a.bin`), join(inside, "out"));
    await Deno.writeTextFile(join(inside, "twin"), "twice");
    await Deno.link(join(inside, "twin"), join(folder.path, "twin"));
    await new Deno.Command("mkfifo", { args: [join(inside, "pipe")] }).output();
    const odd = [
      "none",
      "directory",
      ".",
      "..",
      ".x.part",
      "out",
      `../inner/${ID}-a.bin`,
      "twin",
      "pipe",
      "a\0b",
    ];
    for (const name of odd) {
      expect([name, await openInside(inside, `${inside}/${name}`)]).toEqual([name, null]);
      expect([name, await describeFileInside(inside, `${inside}/${name}`)]).toEqual([name, null]);
    }
    expect(await openInside(join(folder.path, "missing"), join(inside, `${ID}-a.bin`))).toBeNull();
  });

  it("returns null when another file has the name only while it is opened", async () => {
    await using folder = await createTempDir();
    const inside = join(folder.path, "in");
    const { path } = await storeFile(inside, "words");
    const secret = join(folder.path, "secret");
    await Deno.writeTextFile(secret, "secret");
    const aside = join(folder.path, "aside");
    const original = Deno.open;
    for (const place of [Deno.symlink, Deno.link]) {
      const opening = vi.spyOn(Deno, "open").mockImplementation(async (name, options) => {
        await Deno.rename(path, aside);
        await place(secret, path);
        const file = await original(name, options);
        await Deno.remove(path);
        await Deno.rename(aside, path);
        return file;
      });
      const found = await openInside(inside, path);
      opening.mockRestore();
      found?.file.close();
      expect([place.name, found]).toEqual([place.name, null]);
    }
    const found = await openInside(inside, path);
    expect(found?.size).toBe(5);
    found?.file.close();
  });
});

describe("removePartials [UPL-5]", () => {
  it("deletes only the partial files of a crash, and returns their number", async () => {
    await using folder = await createTempDir();
    const uploads = join(folder.path, "uploads");
    expect(await removePartials(uploads)).toBe(0);
    for (const session of ["one", "two"]) {
      await storeFile(join(uploads, session), "words");
      await Deno.writeTextFile(join(uploads, session, ".cut.part"), "half");
      await Deno.writeTextFile(join(uploads, session, "whole.part"), "whole");
    }
    await Deno.writeTextFile(join(uploads, ".file.part"), "no session");
    expect(await removePartials(uploads)).toBe(2);
    expect(namesIn(join(uploads, "one"))).toEqual([`${ID}-a.bin`, "whole.part"]);
    expect(namesIn(uploads)).toContain(".file.part");
    expect(await removePartials(uploads)).toBe(0);
    await expect(removePartials(join(uploads, ".file.part"))).rejects.toThrow();
  });

  it("isPartial recognizes the name of a partial file", () => {
    expect([".a.part", "a.part", ".a", "a"].filter(isPartial)).toEqual([".a.part"]);
  });
});
