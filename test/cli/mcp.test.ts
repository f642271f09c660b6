import { join } from "node:path";
import { expect, it } from "vitest";
import { describeTools } from "../../src/http/app.ts";
import { buildFakeEngines } from "../harness/fakes/agents.ts";
import { openApp } from "../harness/service/app.ts";
import { createTempDir, svc } from "../harness/service/process.ts";
import { startRun } from "../harness/service/run.ts";

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

it("svc mcp names the tools of a worker's scopes before a run, and calls none without a token [CHD-15]", async () => {
  await using app = await openApp({ config: { engines: buildFakeEngines() } });
  const scopes = ["read:workers", "write:memory"];
  const run = await startRun(app, scopes);
  const toolsFile = join(app.dataDir, "tools.json");
  await Deno.writeTextFile(toolsFile, await describeTools(scopes.join(" ")));
  const file = join(app.dataDir, "token");
  const lines = [...ASKED, { jsonrpc: "2.0", id: 3, method: "server/discover" }, {
    ...{ jsonrpc: "2.0", id: 4, method: "tools/call" },
    params: { name: "worker_list", arguments: {} },
  }].map((one) => JSON.stringify(one));
  const early = await talk(app.dataDir, {
    ...{ SVC_URL: app.url, SVC_TOKEN_FILE: file, SVC_TOOLS_FILE: toolsFile },
  }, lines);
  await Deno.writeTextFile(file, run.token);
  const known = await talk(app.dataDir, { SVC_URL: app.url, SVC_TOKEN_FILE: file }, lines);
  const pick = ({ answers }: typeof early, id: number) => answers.find((answer) => answer.id === id);
  expect(pick(early, 1)).toEqual(pick(known, 1));
  expect(pick(early, 2)).toEqual(pick(known, 2));
  expect(pick(early, 3).error.code).toBe(-32_601);
  expect(pick(early, 4).error.message).toContain("SVC_TOKEN_FILE");
});

it("svc mcp refuses unknown arguments with exit 2", async () => {
  await using folder = await createTempDir();
  const { code, err } = await svc(["mcp", "--port"], { dataDir: folder.path });
  expect([code, err]).toEqual([2, expect.stringContaining("--port")]);
});
