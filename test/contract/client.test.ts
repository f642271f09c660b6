import { join } from "node:path";
import openapiTypescript, { astToString } from "openapi-typescript";
import { expect, it } from "vitest";
import { openApp } from "../harness/service/app.ts";
import { loadContract } from "../harness/model/contract.ts";
import { createTempDir } from "../harness/service/process.ts";
import { ROOT } from "../harness/house/tree.ts";

// Code that a user with only the document would write.
const WALK = `import createClient from "openapi-fetch";
import type { paths } from "./schema.ts";

const [url = "", password = ""] = Deno.args;
const anonymous = createClient<paths>({ baseUrl: url });
const login = await anonymous.POST("/api/auth/login", { body: { username: "admin", password } });
if (login.data === undefined) throw new Error(login.error.detail);
const client = createClient<paths>({
  baseUrl: url,
  headers: { authorization: \`Bearer \${login.data.access_token}\` },
});
const worker = await client.POST("/api/workers", { body: { name: "Ada" } });
if (worker.data === undefined) throw new Error(worker.error.detail);
const task = await client.POST("/api/tasks", {
  body: { message_id: "walk", worker_id: worker.data.id, instruction: "hello", type: "immediate" },
});
if (task.data === undefined) throw new Error(task.error.detail);
const ended = await client.GET("/api/tasks/{id}/wait", {
  params: { path: { id: task.data.id }, query: { timeout_ms: 10000 } },
});
const executions = await client.GET("/api/executions", { params: { query: { worker_id: worker.data.id } } });
const [execution] = executions.data ?? [];
const refused = await client.GET("/api/workers/{id}", { params: { path: { id: "nobody" } } });
const code: "not_found" | string | undefined = refused.error?.code;
console.log(JSON.stringify({ status: ended.data?.status, result: execution?.result, code }));
`;

// A request may omit a field that has a default.
const OPTIONS = { defaultNonNullable: false };

it("a client generated from the document compiles and walks login, worker, task, execution (contract 5)", async () => {
  await using app = await openApp();
  await using dir = await createTempDir();
  const { document } = await loadContract();
  const types = astToString(await openapiTypescript(JSON.stringify(document), OPTIONS));
  await Deno.writeTextFile(join(dir.path, "schema.ts"), types);
  await Deno.writeTextFile(join(dir.path, "walk.ts"), WALK);
  const run = async (...args: string[]) => {
    const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), { args, cwd: dir.path })
      .output();
    const decoder = new TextDecoder();
    return { code, out: decoder.decode(stdout), err: decoder.decode(stderr) };
  };
  const config = ["--config", join(ROOT, "deno.json"), "--quiet"];
  const walk = join(dir.path, "walk.ts");
  expect(await run("check", ...config, walk)).toMatchObject({ code: 0 });
  const { code, out, err } = await run("run", "-A", ...config, walk, app.url, "correct horse");
  expect([code, err]).toEqual([0, ""]);
  expect(JSON.parse(out)).toEqual({ status: "completed", result: "hello", code: "not_found" });
});
