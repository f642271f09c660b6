import { describe, expect, it } from "vitest";
import { fakeEngines } from "../harness/agents.ts";
import { openApp } from "../harness/app.ts";

describe("chat message -> reply", () => {
  it("reaches the mentioned worker's program and answers with its output (contract 4)", async () => {
    await using app = await openApp({ config: { engines: fakeEngines() } });
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
