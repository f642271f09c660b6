// Kills a rotation of the signing key at each step, with as many secrets as are allowed.
import { join } from "node:path";
import { expect, it, vi } from "vitest";
import { readKeyBytes } from "../../../src/base/token.ts";
import { openSecret, sealSecret } from "../../../src/store/account/secret_cipher.ts";
import { insertSecret, listAllSecrets } from "../../../src/store/account/secret.ts";
import { Database } from "../../../src/store/db/database.ts";
import { openClient, PASS_HASH } from "../../harness/service/client.ts";
import { createTempDir, startServer } from "../../harness/service/process.ts";

vi.setConfig({ testTimeout: 180_000 });

const SECRETS = 1_000;
const ENV = { SVC_AUTH__PASSWORD_HASH: PASS_HASH };

async function readKey(dataDir: string): Promise<Uint8Array> {
  return readKeyBytes((await Deno.readTextFile(join(dataDir, "secret.key"))).trim());
}

async function insertSecrets(dataDir: string): Promise<void> {
  const key = await readKey(dataDir);
  await using db = await Database.open(`file:${join(dataDir, "svc.db")}`);
  const statements = [];
  for (let at = 0; at < SECRETS; at++) {
    statements.push(
      ...insertSecret(`secret-${at}`, await sealSecret(key, `secret-${at}`, `value ${at}`), at),
    );
  }
  expect((await db.write(statements)).won).toBe(true);
}

async function countReadable(dataDir: string): Promise<number> {
  const key = await readKey(dataDir);
  await using db = await Database.open(`file:${join(dataDir, "svc.db")}`);
  let readable = 0;
  for (const row of await listAllSecrets(db)) {
    const value = await openSecret(key, row.name, row);
    if (value === row.name.replace("secret-", "value ")) readable++;
  }
  return readable;
}

it.each([
  ["rotate.pre-commit", false],
  ["rotate.post-commit", true],
  ["rotate.placed", true],
])("a rotation with 1,000 secrets that is killed at %s loses none [KEY-1]", async (point, isNew) => {
  await using folder = await createTempDir();
  const dataDir = folder.path;
  await (await startServer({ dataDir, env: ENV })).end("SIGTERM");
  await insertSecrets(dataDir);
  const before = await Deno.readTextFile(join(dataDir, "secret.key"));
  {
    await using server = await startServer({ dataDir, env: { ...ENV, SVC_FAULT: `${point}:1:kill` } });
    const api = await openClient(server.url);
    await expect(api.call("POST /api/system/rotate-key", {})).rejects.toThrow();
    await server.ended;
    expect(server.stderr).toContain(`SVC_FAULT fired: ${point}`);
  }
  await (await startServer({ dataDir, env: ENV })).end("SIGTERM");
  expect(await countReadable(dataDir)).toBe(SECRETS);
  expect(await Deno.readTextFile(join(dataDir, "secret.key")) !== before).toBe(isNew);
  expect([...Deno.readDirSync(dataDir)].filter(({ name }) => name.startsWith("secret.key."))).toEqual([]);
  // The next rotation works, too.
  const server = await startServer({ dataDir, env: ENV });
  await (await openClient(server.url)).call("POST /api/system/rotate-key", {});
  await server.end("SIGTERM");
  expect(await countReadable(dataDir)).toBe(SECRETS);
});
