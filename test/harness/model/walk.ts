import { join } from "node:path";
import { expect } from "vitest";
import { GROUPS, loadGroup } from "../../../cli/commands/groups.ts";
import { walkPeople, walkPlatforms, walkQueue } from "./walk_people.ts";
import { walkSchedules } from "./walk_schedules.ts";
import { createSchedule } from "./workload.ts";
import type { Json } from "../service/client.ts";

/** A running service with engine `fake`, and a function that runs its commands. */
export interface WalkWorld {
  dataDir: string;
  call(route: string, body?: unknown, headers?: Record<string, string>): Promise<Json>;
  /** Resolves when no work is left. */
  settle(): Promise<void>;
  /**
   * Returns the pairing code of a stranger with the id `s` on the platform `chats`. A webhook `out` exists,
   * too.
   */
  stranger(): Promise<string>;
  until(event: "execution.started"): Promise<unknown>;
  /** Runs a command that succeeds and returns stdout. Its stderr has to match `err`. */
  run(command: string, args?: string[], err?: RegExp, stdin?: string): Promise<string>;
}

/** Runs every command once, in a sensible order (interface 4.2, contract 6). */
export async function walkAllCommands(world: WalkWorld): Promise<void> {
  const worker = await world.call("POST /api/workers", { name: "Ada" });
  const session = await world.call("POST /api/local/sessions", { worker_id: worker.id });
  const { message_id: message } = await world.call(`POST /api/local/sessions/${session.id}/messages`, {
    content: "say hi",
  });
  await world.settle();
  const key = `local:${session.id}`;
  const [execution] = await world.call(`GET /api/executions?session_id=${session.id}`);

  await world.run("department create", ["-n", "Labs"]);
  await world.run("department create", ["-n", "Optics", "--parent", "labs", "--sort-order", "2"]);
  await world.run("department list");
  await world.run("department get", ["Labs"]);
  await world.run("department update", ["Optics", "--name", "Lasers", "--parent", ""]);
  await world.run("worker create", ["-n", "Bob", "--department", "Labs,Lasers", "--scopes", "read:tasks"]);
  await world.run("department delete", ["Lasers", "--yes"]);
  await world.run("worker list");
  await world.run("worker get", [worker.id]);
  await world.run("worker status", [worker.id]);
  await world.run("worker update", [worker.id, "--description", "the first"]);
  await world.run("worker pause", [worker.id]);
  await world.run("worker resume", [worker.id]);

  const task = ["--message-id", "script", "--worker-id", worker.id, "--instruction", "say done"];
  await world.run("task create", [...task, "--type", "immediate", "--wait"], /accepted/);
  await world.run("run", ["Ada", "say it"], /accepted/);
  const schedule = [...task, "--type", "scheduled", "--cron", "0 0 1 1 *"];
  const made = await createSchedule(world, worker.id, "say done");
  await world.run("task create", schedule);
  const line = { message_id: "script", worker_id: "Ada", instruction: "say done", type: "immediate" };
  const twoLines = `${JSON.stringify(line)}\n${JSON.stringify(line)}\n`;
  await world.run("task create", ["--batch", "-"], /^$/, twoLines).then((out) => expect(out).not.toBe(""));
  await world.run("task list", ["--worker-id", worker.id, "--type", "immediate"]);
  await world.run("task get", [made]);
  await world.run("task run", [made]);
  const body = { message_id: "script", worker_id: worker.id, instruction: "say done", type: "immediate" };
  const awaited = await world.call("POST /api/tasks", body);
  await world.run("task wait", [awaited.id, "--timeout", "20s"]);
  await world.settle();
  await world.run("task cancel", [made]);
  const later = { ...body, type: "countdown", scheduled_at: Date.now() + 3_600_000 };
  const { id: ended } = await world.call("POST /api/tasks", later);
  await world.call(`POST /api/tasks/${ended}/cancel`, {});
  await world.run("task retry", [ended]);
  await world.settle();
  await walkSchedules(world);

  await world.run("execution list", ["--session-id", session.id]);
  await world.run("execution get", [execution.id]);
  await world.run("execution logs", [execution.id]);
  await world.run("execution cancel", [await startLong(world, worker.id)]);

  await walkQueue(world, worker.id, execution.id);

  await world.run("memory save", ["--scope", key, "--key", "tone", "--value", "short"]);
  await world.run("memory get", ["--scope", key]);
  await world.run("memory get", ["--scope", key, "--key", "tone"]);
  await world.run("memory delete", ["--scope", key, "--key", "tone", "--yes"]);

  await world.run("message send", ["--message-id", message, "--stdin"], /^$/, "One more\n");
  await world.run("message list", ["--session-key", key]);
  await world.run(
    "message list-outbound",
    ["--source-type", "system", "--page-size", "1"],
    /^$|use --page 2/,
  );
  await world.run("message trace", [message]).then((out) => expect(out).not.toBe(""));
  await world.run("events", ["--page-size", "1"]);

  await world.run("session list", ["--session-key", key]);
  await world.run("session approvals", ["--session-key", key]);
  await world.run("session clear-worker", ["--session-key", key, "--worker-id", worker.id]);
  await world.run("session clear", ["--session-key", key]);
  await world.run("chat", ["@Ada say bye", "--session", session.id], /accepted/);
  await world.run("worker delete", [worker.id, "--delete-work-dir", "--yes"]);
  await expect(Deno.stat(worker.work_dir)).rejects.toThrow(Deno.errors.NotFound);

  await walkPlatforms(world);
  await walkPeople(world);

  await world.run("system overview");
  await world.run("system executions", ["--limit", "2"]);
  await world.run("system doctor");
  await world.run("system backup", [join(world.dataDir, "backup.tar")]);
  await world.run("system resume", [], /^$|resumed|paused/);
  await world.run("system password", ["--stdin"], /^$/, "another secret\n");

  // `rotate-key` comes last because a new key ends every login.
  await world.run("system rotate-key", ["--yes"], /^$|login/);

  await world.run("config path", [], /no such file|^$/);
  await world.run("config show");
  await world.run("config validate");
  await world.run("config schema");
}

async function startLong(world: WalkWorld, workerId: string): Promise<string> {
  const body = { message_id: "long", worker_id: workerId, instruction: "sleep 60", type: "immediate" };
  const { id } = await world.call("POST /api/tasks", body);
  while (true) {
    const task = await world.call(`GET /api/tasks/${id}`);
    if (task.execution_id !== null) return task.execution_id;
    await world.until("execution.started");
  }
}

export async function listCommands(): Promise<string[]> {
  const all: string[] = [];
  for (const name of Object.keys(GROUPS)) {
    const group = await loadGroup(name);
    all.push(...(Array.isArray(group) ? group.map((spec) => `${name} ${spec.name}`) : [name]));
  }
  return all;
}
