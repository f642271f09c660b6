import { join } from "node:path";
import { expect, it } from "vitest";
import { openApp } from "../harness/service/app.ts";
import { SVC } from "../harness/service/process.ts";

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

async function talk(env: Record<string, string>, lines: string[], args: string[] = []) {
  const [command = "", ...rest] = SVC;
  const child = new Deno.Command(command, {
    args: [...rest, "mcp", ...args],
    env,
    stdin: "piped",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const writer = child.stdin.getWriter();
  await writer.write(new TextEncoder().encode(lines.map((line) => `${line}\n`).join("")));
  await writer.close();
  const { code, stdout, stderr } = await child.output();
  const said = new TextDecoder().decode(stdout).trim().split("\n").filter((line) => line !== "");
  return { code, stderr: new TextDecoder().decode(stderr), answers: said.map((line) => JSON.parse(line)) };
}

it("svc mcp forwards messages both ways and reads the token file for each call (contract 19)", async () => {
  await using app = await openApp();
  const file = join(app.dataDir, "token");
  await Deno.writeTextFile(file, `${await app.token()}\n`);
  const env = { SVC_URL: app.url, SVC_TOKEN_FILE: file };
  const { code, answers } = await talk(env, [...ASKED.map((one) => JSON.stringify(one)), "no json"]);
  expect(code).toBe(0);
  const byId = new Map(answers.map((answer) => [answer.id, answer]));
  expect(byId.get(1).result.serverInfo.name).toBe("svc");
  expect(byId.get(2).result.tools.map(({ name }: { name: string }) => name)).toContain("worker_list");
  expect(byId.get(null).error.code).toBe(-32_700);
  expect(answers).toHaveLength(3);

  await Deno.writeTextFile(file, "wrong");
  const refused = await talk(env, [JSON.stringify(ASKED[2])]);
  expect(refused.answers).toMatchObject([{ id: 2, error: { message: expect.stringContaining("401") } }]);
  await Deno.remove(file);
  const between = await talk(env, [JSON.stringify(ASKED[2])]);
  expect(between.answers).toMatchObject([{
    id: 2,
    error: { message: expect.stringContaining("SVC_TOKEN_FILE") },
  }]);
});

it("svc mcp refuses unknown arguments with exit 2", async () => {
  expect(await talk({}, [], ["--port"])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("--port"),
  });
});
