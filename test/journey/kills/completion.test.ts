import { join } from "node:path";
import { expect, it } from "vitest";
import { buildFakeEnvironment } from "../../harness/fakes/agents.ts";
import { Proxy } from "../../harness/fakes/proxy.ts";
import { openClient } from "../../harness/service/client.ts";
import { connectOpenAi, say, SCOPES } from "../../harness/service/openai.ts";
import { createTempDir, type ServerProcess, startServer } from "../../harness/service/process.ts";
import { waitUntil } from "../../harness/wait.ts";

it.each(["SIGKILL", "SIGTERM"] as const)(
  "%s to the service during a request: the client's retry joins the run, and one reply comes of it [OAI-1]",
  async (signal) => {
    await using folder = await createTempDir();
    // The run does not end within the grace.
    const env = { ...buildFakeEnvironment(), SVC_SHUTDOWN_GRACE: "1s" };
    const options = { dataDir: folder.path, env };
    let server: ServerProcess = await startServer(options);
    try {
      // The address of the next process differs.
      using proxy = new Proxy(() => server.url);
      const api = await openClient(server.url);
      await api.call("POST /api/workers", { name: "Ada" });
      let requests = 0;
      const client = await connectOpenAi(api, SCOPES, {
        baseURL: `${proxy.url}/v1`,
        maxRetries: 20,
        fetch: (...request) => {
          requests++;
          return fetch(...request);
        },
      });
      const path = join(folder.path, "signal");
      const answer = client.chat.completions.create({ model: "Ada", messages: say(`until ${path}`) });
      const isRunning = async () => (await api.call("GET /api/executions?status=running")).length > 0;
      await waitUntil("the run starts", isRunning);
      await server.end(signal);
      server = await startServer(options);
      const sent = requests;
      await waitUntil("the package retries", () => requests > sent);
      await Deno.writeTextFile(path, "");
      const { id, choices } = await answer;
      expect(choices[0]?.message.content).toBe(`found ${path}`);
      const after = await openClient(server.url);
      const { tasks, executions, replies } = await after.call(
        `GET /api/messages/${id.replace("chatcmpl-", "")}/trace`,
      );
      expect(await after.call("GET /api/messages/inbound")).toHaveLength(1);
      expect(tasks).toHaveLength(1);
      expect(replies).toHaveLength(1);
      // An orderly stop uses up no attempt.
      const attempt = signal === "SIGKILL" ? 2 : 1;
      const lost = { status: "failed", failure: "server_lost" };
      expect(executions).toMatchObject([lost, { status: "completed", attempt }]);
    } finally {
      await server.end("SIGKILL");
    }
  },
);
