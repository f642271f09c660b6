import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { openApp } from "../harness/service/app.ts";
import { createTempDir } from "../harness/service/process.ts";

vi.setConfig({ testTimeout: 360_000 });

// Commands that a worker with default scopes tries in its shell, and their exit codes: 3 for objects that do
// not exist for it, 4 for forbidden ones (docs/explanation/security.md). $OTHER, $FOREIGN, $STRANGER: another
// worker, session, message.
const TRIES: [code: number, command: string][] = [
  [4, "worker create -n Evil"],
  [4, "worker create -n Evil --scopes '*:*'"],
  [4, "worker update $SVC_WORKER_ID --description mine"],
  [4, "worker update $SVC_WORKER_ID --scopes '*:*'"],
  [4, "worker update $SVC_WORKER_ID --constraints ''"],
  [4, "worker update $OTHER --engine-args 'echo=--x'"],
  [4, "worker delete $OTHER --delete-work-dir"],
  [4, "worker delete $SVC_WORKER_ID"],
  [4, "worker pause $OTHER"],
  [4, "worker resume $SVC_WORKER_ID"],
  [4, "task create --message-id $SVC_MESSAGE_ID --worker-id $OTHER --instruction x --type immediate"],
  [
    4,
    "task create --message-id $SVC_MESSAGE_ID --worker-id $SVC_WORKER_ID --instruction x --type scheduled --cron '* * * * *'",
  ],
  [4, "task cancel $SVC_TASK_ID"],
  [4, "task run $SVC_TASK_ID"],
  [3, "task get $TASK"],
  [3, "task wait $TASK --timeout 1s"],
  [4, "execution list"],
  [4, "execution get $SVC_EXECUTION_ID"],
  [4, "execution logs $EXECUTION"],
  [4, "execution cancel $EXECUTION"],
  [4, "session list --session-key $SVC_SESSION_KEY"],
  [4, "session clear --session-key $FOREIGN --force"],
  [4, "session clear-worker --session-key $FOREIGN --worker-id $OTHER"],
  [4, "memory save --scope global --key tone --value 'obey me'"],
  [4, "memory delete --scope global --key tone"],
  [3, "memory get --scope $FOREIGN"],
  [3, "memory get --scope $FOREIGN --key secret"],
  [3, "memory save --scope $FOREIGN --key secret --value x"],
  [3, "memory delete --scope $FOREIGN --key secret"],
  [4, "department create -n Evil"],
  [4, "department update Labs --name Evil"],
  [4, "department delete Labs"],
  [4, "message list"],
  [4, "message list-outbound"],
  [4, "message trace $STRANGER"],
  [3, "message send --message-id $STRANGER --stdin"],
  [3, "message send --message-id nobody --stdin"],
  [4, "chat 'do it for me'"],
  [4, "events"],
  [4, "system overview"],
  [4, "system executions"],
  [4, "system doctor"],
  [4, "system backup $FOLDER/stolen.tar"],
  [4, "system password --stdin"],
];

const AGENT = `#!/bin/sh
cat > /dev/null
i=0
while [ -f "$FOLDER/try-$i" ]; do
  echo x | sh "$FOLDER/try-$i" > "$FOLDER/out-$i" 2>&1
  echo $? > "$FOLDER/code-$i"
  i=$((i + 1))
done
echo "$SVC_TOKEN" > "$FOLDER/token"
unset SVC_TOKEN
"$SVC_CTL" ctl worker list > "$FOLDER/no-token" 2>&1
echo $? >> "$FOLDER/no-token"
echo tried
`;

describe("an agent with the default scopes (docs/explanation/security.md) [SCP-1]", () => {
  it(`cannot do ${TRIES.length} forbidden things in its own shell, and its token expires with the run`, async () => {
    await using folder = await createTempDir();
    const agent = join(folder.path, "agent.sh");
    await Deno.writeTextFile(agent, AGENT, { mode: 0o755 });
    const env: Record<string, string> = { FOLDER: folder.path };
    await using app = await openApp({
      config: { engines: { default: "echo", agent: { kind: "command", command: agent, env } } },
    });
    const other = await app.call("POST /api/workers", { name: "Other" });
    const foreign = await app.call("POST /api/local/sessions", { worker_id: other.id });
    const sent = await app.call(`POST /api/local/sessions/${foreign.id}/messages`, {
      content: "secret plans",
    });
    await app.call("POST /api/departments", { name: "Labs" });
    for (const [scope, key] of [[`local:${foreign.id}`, "secret"], ["global", "tone"]]) {
      await app.call("PUT /api/memory/entry", { scope, key, value: "kept" });
    }
    await app.settle();
    const [execution] = await app.call("GET /api/executions");
    const known: Record<string, string> = {
      OTHER: other.id,
      FOREIGN: `local:${foreign.id}`,
      STRANGER: sent.message_id,
      TASK: execution.task_id,
      EXECUTION: execution.id,
    };
    const setting = Object.entries(known).map(([name, value]) => `${name}='${value}'\n`).join("");
    for (const [index, [, command]] of TRIES.entries()) {
      await Deno.writeTextFile(
        join(folder.path, `try-${index}`),
        `${setting}exec "$SVC_CTL" ctl ${command}\n`,
      );
    }
    const before = await state();
    const evil = await app.call("POST /api/workers", { name: "Agent", engine: "agent" });
    const own = await app.call("POST /api/local/sessions", { worker_id: evil.id });
    await app.call(`POST /api/local/sessions/${own.id}/messages`, { content: "try it" });
    await app.settle(240_000);

    const kept = async (name: string) => (await Deno.readTextFile(join(folder.path, name))).trim();
    for (const [index, [code, command]] of TRIES.entries()) {
      const said = await kept(`out-${index}`);
      expect([command, Number(await kept(`code-${index}`)), said]).toEqual([
        command,
        code,
        expect.stringMatching(
          code === 4 ? /lacks the scope|Cannot set|Cannot do this from a run/ : /no such/,
        ),
      ]);
      expect(said).not.toMatch(/secret plans|kept/);
    }
    expect(await kept("no-token")).toMatch(/SVC_TOKEN is missing in this agent's run\n4$/);
    expect(await state()).toEqual(before);
    const dead = await app.send("GET /api/workers", undefined, {
      authorization: `Bearer ${await kept("token")}`,
    });
    expect([dead.status, dead.body.code]).toEqual([401, "unauthenticated"]);

    async function state() {
      const workers = await app.call("GET /api/workers");
      return {
        workers: workers.filter((one: { name: string }) => one.name !== "Agent"),
        departments: await app.call("GET /api/departments"),
        global: await app.call("GET /api/memory?scope=global"),
        foreign: await app.call(`GET /api/memory?scope=local:${foreign.id}`),
        history: await app.call(`GET /api/local/sessions/${foreign.id}/messages`),
        tasks: await app.call(`GET /api/tasks?worker_id=${other.id}`),
      };
    }
  });
});
