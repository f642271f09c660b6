import { join } from "node:path";
import { expect, it } from "vitest";
import { openApp } from "../harness/service/app.ts";
import { createTempDir, svc } from "../harness/service/process.ts";

const ASKED = [
  {
    jsonrpc: "2.0",
    id: 1,
    method: "initialize",
    params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "t", version: "1" } },
  },
  { jsonrpc: "2.0", method: "notifications/initialized" },
  { jsonrpc: "2.0", id: 2, method: "tools/list" },
];

async function talk(dataDir: string, env: Record<string, string>, lines: string[]) {
  const { code, out } = await svc(["mcp"], {
    dataDir,
    env,
    stdin: lines.map((line) => `${line}\n`).join(""),
  });
  return { code, answers: out.split("\n").filter((line) => line !== "").map((line) => JSON.parse(line)) };
}

it("svc mcp forwards messages both ways and reads the token file for each call (contract 19)", async () => {
  await using app = await openApp();
  const file = join(app.dataDir, "token");
  await Deno.writeTextFile(file, `${await app.token()}\n`);
  const env = { SVC_URL: app.url, SVC_TOKEN_FILE: file };
  const { code, answers } = await talk(app.dataDir, env, [
    ...ASKED.map((one) => JSON.stringify(one)),
    "no json",
  ]);
  expect(code).toBe(0);
  const byId = new Map(answers.map((answer) => [answer.id, answer]));
  expect(byId.get(1).result.serverInfo.name).toBe("svc");
  expect(byId.get(2).result.tools.map(({ name }: { name: string }) => name)).toContain("worker_list");
  expect(byId.get(null).error.code).toBe(-32_700);
  expect(answers).toHaveLength(3);

  await Deno.writeTextFile(file, "wrong");
  const refused = await talk(app.dataDir, env, [JSON.stringify(ASKED[2])]);
  expect(refused.answers).toMatchObject([{ id: 2, error: { message: expect.stringContaining("401") } }]);
  await Deno.remove(file);
  const between = await talk(app.dataDir, env, [JSON.stringify(ASKED[2])]);
  expect(between.answers).toMatchObject([{
    id: 2,
    error: { message: expect.stringContaining("SVC_TOKEN_FILE") },
  }]);
});

it("svc mcp refuses unknown arguments with exit 2", async () => {
  await using folder = await createTempDir();
  const { code, err } = await svc(["mcp", "--port"], { dataDir: folder.path });
  expect([code, err]).toEqual([2, expect.stringContaining("--port")]);
});
