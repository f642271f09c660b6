// Random graphs of waiting tasks: what the triggers store equals a plain model after every change.
import { expect, it } from "vitest";
import { buildNewTask } from "../../src/domain/work/task.ts";
import { Database } from "../../src/store/db/database.ts";
import { migrate } from "../../src/store/db/migrate.ts";
import { finishExecution, insertExecution, markCancelled } from "../../src/store/work/execution.ts";
import { insertTasks, type NewTask } from "../../src/store/work/task.ts";
import { insertParents, retryEndedTask } from "../../src/store/work/task_parent.ts";
import {
  cancelOwnerTasks,
  cancelTask,
  cancelTaskRun,
  claimTask,
  finishTask,
} from "../../src/store/work/task_transitions.ts";
import { USAGE_UNKNOWN } from "../../src/domain/work/execution.ts";
import { createRandom } from "../harness/model/schedule.ts";

// The long run: SVC_TEST_STEPS=1500.
const STEPS = Number(process.env.SVC_TEST_STEPS ?? 600);
const SEED = Number(process.env.SVC_TEST_SEED ?? 20_261_126);

type Status = "pending" | "running" | "completed" | "failed" | "cancelled";

interface Node {
  id: string;
  session: string;
  when: "success" | "end";
  parents: string[];
  status: Status;
  /** The parent whose failure cancelled it. */
  stoppedBy: string;
  /** The run of the cancelled task has not ended. */
  ending: boolean;
  runs: number;
}

/** The rules in plain words, without SQL. */
class Model {
  readonly nodes = new Map<string, Node>();
  retried = 0;

  get(id: string): Node {
    const node = this.nodes.get(id);
    if (node === undefined) throw new Error(`no node ${id}`);
    return node;
  }

  isOpen({ status, ending }: Node): boolean {
    return status === "pending" || status === "running" || ending;
  }

  openParents({ parents }: Node): string[] {
    return parents.filter((id) => this.isOpen(this.get(id)));
  }

  children(id: string): Node[] {
    return [...this.nodes.values()].filter(({ parents }) => parents.includes(id));
  }

  failedParents({ parents }: Node): string[] {
    return parents.filter((id) => {
      const parent = this.get(id);
      return !this.isOpen(parent) && parent.status !== "completed";
    });
  }

  /** Cancels everything that waits for the success of a failed task. */
  spread(): void {
    for (let changed = true; changed;) {
      changed = false;
      for (const node of this.nodes.values()) {
        if (node.status !== "pending" || node.when === "end") continue;
        const [failed] = this.failedParents(node);
        if (failed === undefined) continue;
        node.status = "cancelled";
        node.stoppedBy = failed;
        changed = true;
      }
    }
  }

  /** Returns the task to the queue, and what only its failure had cancelled. */
  retry(node: Node): void {
    const tree = new Set([node.id]);
    for (const id of tree) {
      for (const one of this.nodes.values()) {
        if (one.status === "cancelled" && one.stoppedBy === id) tree.add(one.id);
      }
    }
    for (const id of tree) Object.assign(this.get(id), { status: "pending", stoppedBy: "" });
    // Another failure still cancels some of them.
    this.spread();
    for (const id of tree) if (this.get(id).status === "pending") this.retried++;
  }
}

class World {
  readonly model = new Model();
  now = 1_000;
  #count = 0;

  constructor(readonly db: Database, readonly chance: () => number) {}

  pick<T>(list: readonly T[]): T | undefined {
    return list[Math.floor(this.chance() * list.length)];
  }

  async create(): Promise<void> {
    const known = [...this.model.nodes.values()].slice(-30);
    const nodes = Array.from({ length: 1 + Math.floor(this.chance() * 3) }, (): Node => {
      const parents = new Set<string>();
      for (let n = Math.floor(this.chance() * 4); n > 0; n--) {
        const parent = this.pick(known);
        if (parent !== undefined) parents.add(parent.id);
      }
      const node: Node = {
        id: `t${String(this.#count++).padStart(5, "0")}`,
        session: `cli:${Math.floor(this.chance() * 40)}`,
        when: this.chance() < 0.7 ? "success" : "end",
        parents: [...parents],
        status: "pending",
        stoppedBy: "",
        ending: false,
        runs: 0,
      };
      known.push(node);
      return node;
    });
    for (const node of nodes) this.model.nodes.set(node.id, node);
    this.model.spread();
    const { won } = await this.db.write([
      ...insertTasks(nodes.map((node) => this.#buildRow(node))),
      ...insertParents(nodes.flatMap(({ id: taskId, parents }) =>
        parents.map((id, position) => {
          const parent = this.model.get(id);
          const status = this.model.isOpen(parent) ? "" as const : parent.status as "completed";
          return { taskId, position, id, status };
        })
      )),
    ]);
    expect(won).toBe(true);
  }

  // As the API plans it: a task after a failed one is created as cancelled.
  #buildRow(node: Node): NewTask {
    const seed = {
      ...{ id: node.id, message_id: node.session.slice(4), worker_id: "w", session_key: node.session },
      ...{
        instruction: "x",
        type: "immediate" as const,
        created_by: "x",
        after: node.parents,
        after_when: node.when,
      },
    };
    const times = { scheduled_at: null, cron: "", time_zone: "", next_run_at: null };
    const plan = { ...times, status: node.status as "pending", reason: "" };
    return {
      ...buildNewTask(seed, plan, this.now),
      due_at: node.status === "pending" ? this.now : null,
      ...{ parent_task_id: null, depth: 0, after_depth: 0, stopped_by: node.stoppedBy },
      open_parents: this.model.openParents(node).length,
    };
  }

  async claim(node: Node): Promise<void> {
    const execution_id = `${node.id}-${node.runs}`;
    const { won } = await this.db.write([
      ...claimTask(node.id, execution_id, this.now),
      insertExecution({
        ...{ execution_id, worker_id: "w", worker_name: "w", task_id: node.id, message_id: "m" },
        ...{ session_key: node.session, session_id: "", engine: "e", fallback_from: "", instruction: "x" },
        ...{ attempt: node.runs + 1, run_id: execution_id, created_at: this.now },
      }),
    ]);
    const may = node.status === "pending" && this.model.openParents(node).length === 0;
    expect(won, `claim of ${node.id}`).toBe(may);
    if (won) Object.assign(node, { status: "running", runs: node.runs + 1 });
  }

  async finish(node: Node): Promise<void> {
    const execution_id = `${node.id}-${node.runs - 1}`;
    const status = this.chance() < 0.7 ? "completed" as const : "failed" as const;
    const end = {
      ...{ status, session_id: "", result: `result of ${execution_id}`, error: "", exit_code: 0 },
      ...{ failure: status === "failed" ? "exit_code" as const : "" as const, usage: USAGE_UNKNOWN },
    };
    const run = { task_id: node.id, execution_id };
    const { won } = await this.db.write([
      ...finishExecution(execution_id, end, this.now),
      finishTask(run, status, status === "failed" ? `why ${execution_id}` : "", this.now),
    ]);
    expect(won).toBe(true);
    if (node.ending) node.ending = false;
    else node.status = status;
    this.model.spread();
  }

  async cancel(node: Node): Promise<void> {
    if (node.status === "running") {
      const execution_id = `${node.id}-${node.runs - 1}`;
      const run = { task_id: node.id, execution_id };
      await this.db.write([...markCancelled(execution_id, "x"), cancelTaskRun(run, "by hand", this.now)]);
      Object.assign(node, { status: "cancelled", ending: true });
    } else {
      const { won } = await this.db.write(cancelTask(node.id, "by hand", this.now));
      expect(won).toBe(node.status === "pending");
      if (won) node.status = "cancelled";
    }
    this.model.spread();
  }

  async clear(session_key: string): Promise<void> {
    await this.db.write([cancelOwnerTasks({ session_key }, "cleared", this.now)]);
    for (const node of this.model.nodes.values()) {
      if (node.session !== session_key) continue;
      if (node.status === "running") Object.assign(node, { status: "cancelled", ending: true });
      if (node.status === "pending") node.status = "cancelled";
    }
    this.model.spread();
  }

  async retry(node: Node): Promise<void> {
    const keys = {
      task_id: node.id,
      worker_id: "w",
      session_key: node.session,
      message_id: "m",
      actor: "user:x",
    };
    const { won } = await this.db.write(retryEndedTask(keys, 0, this.now));
    const stopped = node.when === "success" && this.model.failedParents(node).length > 0;
    const may = (node.status === "failed" || node.status === "cancelled") && !node.ending && !stopped;
    expect(won, `retry of ${node.id}`).toBe(may);
    if (won) this.model.retry(node);
  }

  async compare(): Promise<void> {
    const tasks = await this.db.read<Record<string, unknown>>(
      "select id, status, open_parents, stopped_by <> '' as stopped, due_at is null as undue, reason from task",
    );
    for (const task of tasks) {
      const node = this.model.get(String(task.id));
      const name = `${node.id} after ${node.parents}`;
      expect([name, task.status], name).toEqual([name, node.status]);
      const open = this.model.openParents(node).length;
      expect([name, task.open_parents]).toEqual([name, open]);
    }
    expect(tasks.length).toBe(this.model.nodes.size);
    const links = await this.db.read<{ task_id: string; parent_id: string; status: string; result: string }>(
      "select task_id, parent_id, status, result from task_parent",
    );
    for (const { task_id, parent_id, status, result } of links) {
      const parent = this.model.get(parent_id);
      const name = `${task_id} after ${parent_id}`;
      expect([name, status]).toEqual([name, this.model.isOpen(parent) ? "" : parent.status]);
      if (status === "completed") expect(result).toBe(`result of ${parent_id}-${parent.runs - 1}`);
    }
    const events = await this.db.readValue("select count(*) from journal where kind = 'task.retried'");
    expect(events, "events of tasks that returned").toBe(this.model.retried);
    // No task waits for a failure that can no longer become a success.
    const stuck = await this.db.read(
      `select task.id
      from task
      join task_parent on task_id = task.id
      where task.status = 'pending' and after_when = 'success' and task_parent.status in ('failed', 'cancelled')`,
    );
    expect(stuck).toEqual([]);
  }
}

it(`random graphs of waiting tasks: each change gives the state of a plain model, and all end (contract 25) [AFT-1]`, async () => {
  await using db = await Database.open(":memory:");
  await migrate(db, 1);
  await db.write([{
    sql: `insert into worker (id, name, name_key, work_dir, paused, created_at, updated_at)
      values ('w', 'w', 'w', '/tmp', 0, 1, 1)`,
    args: [],
  }]);
  const world = new World(db, createRandom(SEED));
  const { model, chance } = world;
  const recent = () => [...model.nodes.values()].slice(-60);
  for (let step = 0; step < STEPS; step++) {
    world.now += 10;
    const dice = chance();
    const node = world.pick(recent());
    const running = world.pick(recent().filter((one) => one.status === "running" || one.ending));
    if (node === undefined || dice < 0.2) await world.create();
    else if (dice < 0.5) await world.claim(node);
    else if (dice < 0.75) running !== undefined && await world.finish(running);
    else if (dice < 0.82) await world.cancel(node);
    else if (dice < 0.84) await world.clear(node.session);
    else await world.retry(node);
    if (step % 5 === 0) await world.compare();
  }
  // The rest ends when each task that can be claimed runs.
  for (let left = true; left;) {
    left = false;
    for (const node of model.nodes.values()) {
      if (node.status === "pending" && model.openParents(node).length === 0) await world.claim(node);
      if (node.status === "running" || node.ending) {
        left = true;
        await world.finish(node);
      }
    }
  }
  await world.compare();
  expect(await db.readValue("select count(*) from task where status in ('pending', 'running')")).toBe(0);
  const all = [...model.nodes.values()];
  const seen = new Set(all.map(({ status, stoppedBy, runs }) => `${status} ${stoppedBy !== ""} ${runs > 1}`));
  // The walk met runs that were repeated, and trees that a failure cancelled.
  expect(seen.has("completed false true") && seen.has("cancelled true false"), [...seen].join()).toBe(true);
});
