import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { buildFakeEngines } from "../harness/fakes/agents.ts";
import { openApp } from "../harness/service/app.ts";
import { createTempDir, startServer, svc } from "../harness/service/process.ts";
import { ROOT } from "../harness/house/tree.ts";

describe("chat message -> reply", () => {
  it("reaches the mentioned worker's program and sends its output as the reply (contract 4)", async () => {
    await using app = await openApp({ config: { engines: buildFakeEngines() } });
    const worker = await app.call("POST /api/workers", { name: "Ada" });
    const session = await app.call("POST /api/local/sessions");
    const sent = await app.call(`POST /api/local/sessions/${session.id}/messages`, {
      content: "@ada say good day",
    });
    expect(sent).toMatchObject({ status: "queued" });
    await app.settle();

    const messages = await app.call(`GET /api/local/sessions/${session.id}/messages`);
    expect(messages.map(({ role, content }: { role: string; content: string }) => [role, content])).toEqual([
      ["user", "@ada say good day"],
      ["bee", "good day"],
    ]);
    const [execution] = await app.call("GET /api/executions");
    expect(execution).toMatchObject({
      worker_id: worker.id,
      status: "completed",
      result: "good day",
      exit_code: 0,
      session_key: `local:${session.id}`,
    });
    const log = await app.call(`GET /api/executions/${execution.id}/logs`);
    expect(log).toMatch(/^\d{4}-\d\d-\d\dT\S+Z .*\n/);
    expect(log).toContain("good day");
  });
});

it("agents can call svc from a source directory with a space and a percent sign in its name (contract 4.8)", async () => {
  await using folder = await createTempDir();
  const tree = join(folder.path, "my 100% svc");
  await Deno.symlink(ROOT, tree);
  const dataDir = join(folder.path, "data");
  await Deno.mkdir(dataDir);
  await using _server = await startServer({
    dataDir,
    program: [Deno.execPath(), "run", "-A", join(tree, "main.ts")],
  });
  expect(await svc(["version"], { dataDir, program: [join(dataDir, "bin", "svc")] })).toMatchObject({
    code: 0,
    out: expect.stringMatching(/^svc /),
  });
});
