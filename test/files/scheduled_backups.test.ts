import { join } from "node:path";
import { expect, it } from "vitest";
import { formatBackupName, removeOldBackups, storeBackup } from "../../src/files/scheduled_backups.ts";
import { createTempDir } from "../harness/service/process.ts";

it("storeBackup stops between two chunks when the service stops, and leaves no file [BAK-10]", async () => {
  await using folder = await createTempDir();
  const stopping = new AbortController();
  let asked = 0;
  async function* pieces() {
    for (let piece = 0; piece < 10; piece++) {
      asked++;
      if (piece === 2) stopping.abort(new Error("the service stops"));
      yield await Promise.resolve(new Uint8Array(10));
    }
  }
  const incoming = { folder: folder.path, name: "svc-1.tar", content: ReadableStream.from(pieces()) };
  await expect(storeBackup(incoming, stopping.signal)).rejects.toThrow("the service stops");
  expect(asked).toBeLessThan(6);
  expect([...Deno.readDirSync(folder.path)]).toEqual([]);
});

it("removeOldBackups() never deletes the latest backup, even after the clock was ahead [BAK-10]", async () => {
  await using folder = await createTempDir();
  const at = (time: string) => formatBackupName(Date.parse(time));
  const names = () => [...Deno.readDirSync(folder.path)].map(({ name }) => name).sort();
  const real = ["2026-01-05T03:00:00Z", "2026-01-06T03:00:00Z"].map(at);
  const ahead = ["2036-01-05T03:00:00Z", "2036-01-06T03:00:00Z"].map(at);
  for (const name of [...ahead, ...real, "mine.tar"]) await Deno.writeTextFile(join(folder.path, name), "");
  await removeOldBackups(folder.path, 3, real[1] ?? "");
  expect(names()).toEqual(["mine.tar", ...real, ahead[1]]);
  await removeOldBackups(folder.path, 1, real[1] ?? "");
  expect(names()).toEqual(["mine.tar", real[1]]);
});
