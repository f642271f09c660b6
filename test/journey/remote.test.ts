import { describe, expect, it } from "vitest";
import { openApp } from "../harness/app.ts";

const REMOTE_URL = Deno.env.get("SVC_TEST_LIBSQL_URL");

describe.skipIf(REMOTE_URL === undefined)("the whole service on a real libSQL server", () => {
  it("takes a message to its reply, and finds everything again after a restart", async () => {
    const config = { database: { url: REMOTE_URL ?? "" } };
    let sessionId = "";
    {
      await using app = await openApp({ config });
      await app.call("POST /api/workers", { name: "Ada" });
      const { id } = await app.call("POST /api/local/sessions");
      sessionId = id;
      await app.call(`POST /api/local/sessions/${id}/messages`, { content: "@Ada hello" });
      await app.settle();
    }
    await using app = await openApp({ config });
    const messages = await app.call(`GET /api/local/sessions/${sessionId}/messages`);
    expect(messages.map((one: { content: string }) => one.content)).toEqual(["@Ada hello", "hello"]);
    expect(await app.call("GET /api/executions")).toMatchObject([{ status: "completed" }]);
  });
});
