import { join } from "node:path";
import { expect, it } from "vitest";
import { World } from "../../harness/model/scenario.ts";
import { waitUntilQuiet } from "../../harness/service/client.ts";
import { PASSWORD, PASSWORD_HASH } from "../../harness/service/app.ts";

const FAKE_CLAUDE = new URL("../../harness/fakes/fake_claude.sh", import.meta.url).pathname;

function buildEngine(name: string, more: object = {}) {
  const env = { ANTHROPIC_API_KEY: "x", FAKE_NAME: name };
  return { kind: "claude", command: FAKE_CLAUDE, warm: { max: 0 }, env, ...more };
}

// The first run meets the limit. The second run has another engine.
it.each([
  ["before the limit is stored", "outcome.pre-commit:1"],
  ["after the limit is stored", "outcome.post-commit:1"],
  ["after the claim of the second engine", "claim.post:2"],
  ["after the start of the second engine", "pid.recorded:2"],
  ["before the reply of the second engine is stored", "outcome.pre-commit:2"],
  ["after the reply of the second engine is stored", "outcome.post-commit:2"],
])("a kill %s gives one reply, by the second engine [FBK-1]", async (_when, point) => {
  await using world = await World.open({
    password: PASSWORD,
    env: { SVC_AUTH__PASSWORD_HASH: PASSWORD_HASH, SVC_ENGINES__DEFAULT: "first" },
  });
  await Deno.writeTextFile(
    join(world.dataDir, "config.yaml"),
    JSON.stringify({
      engines: {
        first: buildEngine("first", { fallback: ["second"] }),
        second: buildEngine("second"),
      },
    }),
  );
  const { api, server } = await world.start(`${point}:kill`);
  const worker = await api.call("POST /api/workers", { name: "Ada", fallback: true });
  await Deno.writeTextFile(join(worker.work_dir, "limited.first"), "3600");
  const session = await api.call("POST /api/local/sessions", { worker_id: worker.id });
  await api.call(`POST /api/local/sessions/${session.id}/messages`, { content: "as one" }).catch(() => {});
  await server.ended;
  const { api: again } = await world.start();
  await waitUntilQuiet(again);
  const messages = await again.call(`GET /api/local/sessions/${session.id}/messages`);
  expect(messages.map(({ content }: { content: string }) => content)).toEqual([
    "as one",
    "second replaces first, which is rate limited or cannot be used.\n\nsecond says one",
  ]);
  const [task] = await again.call(`GET /api/tasks?worker_id=${worker.id}`);
  expect(task).toMatchObject({ status: "completed" });
  const [execution] = await again.call("GET /api/executions");
  expect(execution).toMatchObject({ engine: "second", fallback_from: "first", status: "completed" });
});
