import { join } from "node:path";
import { expect, it } from "vitest";
import { restore } from "../../../src/boot/restore.ts";
import { Database } from "../../../src/store/db/database.ts";
import { openApp } from "../../harness/service/app.ts";
import { createTempDir } from "../../harness/service/process.ts";

it("restore refuses, and changes nothing, when its own changes cannot reach the database file [BAK-4]", async () => {
  await using folder = await createTempDir();
  const file = join(folder.path, "backup.tar");
  {
    await using app = await openApp();
    const made = await fetch(`${app.url}/api/system/backup`, {
      method: "POST",
      headers: { authorization: `Bearer ${await app.token()}` },
    });
    await Deno.writeFile(file, made.body ?? new Uint8Array());
  }
  const dataDir = join(folder.path, "data");
  const config = join(folder.path, "config.yaml");
  await Deno.writeTextFile(config, `data_dir: ${dataDir}\n`);
  const said: string[] = [];
  let reader: Database | undefined;
  const before = Deno.umask();
  const code = await restore({
    ...{ file, config, newKey: false, paused: true },
    say: (text) => said.push(text),
    // Another process reads the unpacked file, so the WAL file cannot be moved into it.
    confirm: async () => {
      reader = await Database.open(`file:${join(dataDir, "restore.part", "svc.db")}`);
      await reader.read("begin");
      await reader.read("select seq from journal limit 1");
      return true;
    },
  });
  Deno.umask(before);
  await reader?.close();
  expect(said.at(-1)).toMatch(/another program is reading or writing.*Nothing was changed/);
  expect(code).toBe(1);
  const left = [...Deno.readDirSync(dataDir)].map(({ name }) => name);
  expect(left.filter((name) => name.startsWith("svc.db") || name.startsWith("before"))).toEqual([]);
});
