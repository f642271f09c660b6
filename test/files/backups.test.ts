import { expect, it } from "vitest";
import { storeBackup } from "../../src/files/backups.ts";
import { tempDir } from "../harness/process.ts";

it("storeBackup() stops between two pieces when the service stops, and leaves nothing (reliability BAK-10)", async () => {
  await using folder = await tempDir();
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
