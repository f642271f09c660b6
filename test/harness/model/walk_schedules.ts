import type { WalkWorld } from "./walk.ts";

/** Runs every command of schedules for the worker Ada (contract 15). */
export async function walkSchedules(world: WalkWorld): Promise<void> {
  const schedule = ["--worker", "Ada", "--instruction", "say done", "--name", "nightly"];
  await world.run("schedule create", [...schedule, "--cron", "0 0 1 1 *"]);
  await world.run("schedule create", [...schedule, "--in", "2h", "--paused"]);
  await world.run("schedule list", ["--worker-id", "Ada", "--page-size", "1"], /^$|use --page 2/);
  const [{ id }] = await world.call("GET /api/schedules?status=scheduled&paused=false");
  await world.run("schedule get", [id]);
  await world.run("schedule update", [id, "--cron", "0 0 1 2 *", "--overlap", "queue", "--max-runs", "9"]);
  await world.run("schedule pause", [id]);
  await world.run("schedule resume", [id]);
  await world.run("schedule run", [id, "--wait"], /accepted/);
  await world.run("schedule preview", ["30 2 * * *", "--time-zone", "Europe/Berlin", "--count", "3"]);
  await world.run("schedule delete", [id, "--yes"]);
}
