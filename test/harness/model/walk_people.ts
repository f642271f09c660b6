import { expect } from "vitest";
import { createRepository } from "../service/git_server.ts";
import { createTempDir } from "../service/process.ts";
import { formatSkill } from "../service/skill_app.ts";
import { buildBearer, SUBSCRIPTION } from "./people.ts";
import type { WalkWorld } from "./walk.ts";

const PASSWORD = "a long enough word\n";

/** Runs the commands about users, logins and usage once each (contract 9, contract 17). */
export async function walkPeople(world: WalkWorld): Promise<void> {
  await world.run("user create", ["-n", "eve", "--role", "operator", "--password-stdin"], /^$/, PASSWORD);
  await world.run("user list");
  await world.run("user get", ["eve"]);
  await world.run("user update", ["eve", "--role", "viewer"]);
  await world.run("user disable", ["eve"]);
  await world.run("user enable", ["eve"]);
  await world.run("user password", ["eve", "--stdin"], /^$|eve/, "another long word\n");
  await world.run(
    "login",
    ["--username", "eve", "--password-stdin"],
    /logged in as eve/,
    "another long word\n",
  );
  await world.run("whoami");
  await world.run("logout", [], /^$|logged out/);
  await world.run("context list");
  await world.run("context use", ["local"], /the configured service/);
  const login = await world.call("POST /api/auth/login", { username: "eve", password: "another long word" });
  const device = await world.call(
    "POST /api/push/devices",
    { ...SUBSCRIPTION, tell: {} },
    buildBearer(login.access_token),
  );
  await world.run("device list");
  await world.run("device delete", [device.id, "--yes"]);
  await world.run("user delete", ["eve", "--yes"]);

  const made = await world.call("POST /api/tokens", { name: "old", scopes: ["read:*"] });
  await world.run("token create", ["-n", "ci", "--scopes", "read:tasks"], /^$|once/);
  await world.run("token list");
  await world.run("token delete", [made.id, "--yes"]);
  await world.run("secret set", ["key", "--stdin"], /^$/, "a value\n");
  const { id: holder } = await world.call("POST /api/workers", { name: "Holder" });
  await world.run("secret grant", ["key", "--worker", holder]);
  await world.run("secret list");
  await world.run("secret get", ["key"]);
  await world.run("secret revoke", ["key", "--worker", holder]);
  await world.run("secret delete", ["key", "--yes"]);
  await world.call(`PUT /api/workers/${holder}`, { engine: "claude" });
  await world.run("mcp add", [holder, "files", "--", "mcp-files", "-v"]);
  await world.run("mcp list", [holder]);
  await world.run("mcp remove", [holder, "files", "--yes"]);
  await walkSkills(world, holder);
  await world.call(`DELETE /api/workers/${holder}`);
  await world.run("audit").then((out) => expect(out).not.toBe(""));
  await world.run("console", ["--print"], /^$|once|60/);
}

async function walkSkills(world: WalkWorld, worker: string): Promise<void> {
  await using folder = await createTempDir();
  const path = await createRepository(folder.path, { "weigh/SKILL.md": formatSkill("weigh-parcels") });
  await world.run("skill add", [worker, `file://${path}`, "--path", "weigh"], /weigh-parcels is at/);
  expect(await world.run("skill list", [worker])).not.toBe("");
  await world.run("skill update", [worker, "--yes"], /up to date/);
  await world.run("skill remove", [worker, "weigh-parcels", "--yes"]);
}

/** Runs the commands about the whole queue and the usage of runs once each. */
export async function walkQueue(world: WalkWorld, worker: string, execution: string): Promise<void> {
  await world.run("queue list", ["--worker-id", worker]);
  const idle = await world.call("POST /api/workers", { name: "Idle", paused: true });
  const body = { message_id: "idle", worker_id: idle.id, instruction: "wait", type: "immediate" };
  await world.call("POST /api/tasks", body);
  const filter = ["--worker-id", idle.id, "--status", "pending"];
  await world.run("queue cancel", ["--expected", "1", ...filter], /^$|cancelled/);
  await world.run("engine list");
  await world.run("engine get", ["echo"]);
  await world.run("engine lift", ["echo"]);
  await world.run("usage", ["--by", "worker"]);
  await world.run("budget create", ["--name", "Day", "--unit", "runs", "--limit", "1000", "--period", "24h"]);
  await world.run("budget list");
  await world.run("budget get", ["Day"]);
  await world.run("budget update", ["Day", "--limit", "2000", "--soft", "90"]);
  await world.run("budget lift", ["Day", "--for", "1m"]);
  await world.run("budget delete", ["Day", "--yes"]);
  await walkRunners(world);
  await world.run("execution retry", [execution]);
  await world.run("execution steer", [execution, "and this"]);
  await world.run("worker activity");
  await walkTrees(world);
  await world.run("system config");
  await world.run("system check-config", ["-"], /valid/, "limits: {max_attempts: 2}\n");
  await world.run("ask", ["Which colour?", "--option", "Red", "--timeout", "1h"]);
  await world.run("inbox list");
  const [question] = await world.call("GET /api/questions?status=open");
  await world.run("inbox dismiss", [question.id, "--until", "+1h"]);
  await world.run("question list", ["--status", "open"]);
  await world.run("question get", [question.id]);
  await world.run("question answer", [question.id, "1"]);
  const other = await world.call("POST /api/questions", { message_id: "m", text: "And now?" });
  await world.run("question cancel", [other.id]);
  await world.run("conversation list");
  await world.call("PUT /api/memory/entry", { scope: "global", key: "found", value: "hello" });
  await world.run("search", ["hello"]);
  await world.run("export");
  await world.run("route explain", ["@Ada hello"]);
  const fleet = "departments: [{ name: Newsroom }]";
  await world.run("apply", ["-f", "-"], /^$/, fleet);
  await world.run("diff", ["-f", "-"], /^$/, fleet);
  for (const source of ["openclaw", "hermes"]) {
    const directory = new URL(`../../fixtures/import/${source}`, import.meta.url).pathname;
    await world.run(`import ${source}`, [directory], /Not imported/);
  }
  await world.settle();
}

async function walkRunners(world: WalkWorld): Promise<void> {
  await world.run("runner add", ["mac1", "--labels", "macos,gpu"]);
  await world.run("runner list");
  await world.run("runner get", ["mac1"]);
  await world.run("runner drain", ["mac1"]);
  await world.run("launcher list");
  await world.run("launcher resume", ["gpu"]);
  const worker = await world.call("POST /api/workers", { name: "Away", runs_on: ["gpu"] });
  await world.run("worker rehome", [worker.id, "--to", "mac1"]);
  await world.run("runner remove", ["mac1", "--yes"]);
}

/** Runs the commands about platforms once each (contract 10). */
export async function walkPlatforms(world: WalkWorld): Promise<void> {
  const code = await world.stranger();
  await world.run("platform list");
  await world.run("platform get", ["local"]);
  await world.run("platform test", ["local"]);
  await world.run("platform pair", [code, "--yes"], /to write on chats/);
  await world.run("platform senders", ["chats"]).then((out) => expect(out).not.toBe(""));
  await world.run("platform revoke", ["chats", "s"]);
  await world.run("message resend", ["--platform", "chats"]);

  const url = ["--url", "https://127.0.0.1:1/", "--events", "task.*"];
  await world.run("webhook create", ["-n", "ci", ...url]);
  await world.run("webhook list");
  await world.run("webhook get", ["ci"]);
  await world.run("webhook update", ["ci", "--disable"]);
  await world.run("webhook test", ["out"]);
  await world.run("webhook deliveries", ["out"]);
  await world.run("webhook replay", ["ci", "--after", "0"]);
  await world.run("webhook delete", ["ci", "--yes"]);
}

// The commands about the repository of a worker (contract 26)
async function walkTrees(world: WalkWorld): Promise<void> {
  await using folder = await createTempDir();
  const path = await createRepository(folder.path);
  await world.run("worker create", ["-n", "Coder", "--repo", path]);
  const [{ id: coder }] = await world.call("GET /api/workers?name=Coder");
  await world.run("worker update", [coder, "--repo", JSON.stringify({ path, per: "task" })]);
  const body = { message_id: "tree", worker_id: coder, instruction: "touch made.txt", type: "immediate" };
  const task = await world.call("POST /api/tasks", body);
  await world.settle();
  const { execution_id } = await world.call(`GET /api/tasks/${task.id}`);
  expect(await world.run("execution diff", [execution_id])).toContain("made.txt");
  expect(await world.run("execution diff", [execution_id, "--stat"])).toContain("made.txt");
  expect(await world.run("worker trees", [coder])).not.toBe("");
  await world.run("execution push", [execution_id]);
  await world.run("execution discard", [execution_id, "--yes"]);
  await world.call(`DELETE /api/workers/${coder}`);
}
