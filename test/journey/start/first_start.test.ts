import { join } from "node:path";
import { expect, it } from "vitest";
import { Server } from "../../../src/boot/server.ts";
import { findCredential } from "../../../src/store/account/credential.ts";
import { buildTestConfig } from "../../harness/service/app.ts";
import { createTempDir, svc } from "../../harness/service/process.ts";
import { findFreePort } from "../../harness/service/port.ts";

it("finds a taken port before it creates a password, so the next start still prints one (contract 8.17)", async () => {
  await using folder = await createTempDir();
  const taken = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  try {
    const env = { SVC_SERVER__PORT: String(taken.addr.port) };
    const refused = await svc(["serve"], { dataDir: folder.path, env });
    expect([refused.code, refused.out]).toEqual([1, ""]);
    expect(refused.err).toBe(
      `Cannot listen on 127.0.0.1:${taken.addr.port}: the port is in use. Set server.port to another port.\n`,
    );
    expect(await Deno.stat(join(folder.path, "secret.key")).catch(() => null)).toBeNull();
  } finally {
    taken.close();
  }
  const server = await Server.open(buildConfig(folder.path));
  expect(server.generatedPassword).toMatch(/^[a-z0-9]{24}$/);
  await server.stop();
});

it("takes the port, but responds only after the password's hash is stored (contract 8.17)", async () => {
  await using folder = await createTempDir();
  const port = findFreePort();
  const loaded = buildConfig(folder.path);
  loaded.config.server.port = port;
  const server = await Server.open(loaded);
  try {
    let answered = false;
    const answer = fetch(`http://127.0.0.1:${port}/livez`).then((response) => {
      answered = true;
      return response.body?.cancel().then(() => response.status);
    });
    expect(await findCredential(server.parts.db)).not.toBeNull();
    expect(answered).toBe(false);
    await server.start();
    expect(await answer).toBe(200);
  } finally {
    await server.stop();
  }
});

function buildConfig(folder: string): ReturnType<typeof buildTestConfig> {
  return buildTestConfig(folder, { auth: { password_hash: "" } });
}
