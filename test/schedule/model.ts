import { findNextOccurrence } from "../../src/domain/work/cron.ts";
import { getRetryDelayMs } from "../../src/domain/work/retry_delay.ts";
import type { Expected, Firing, GateEnd, Open, RunEnd } from "./expected.ts";

export const MODEL_CRON = "*/10 * * * *";
export const MODEL_ATTEMPTS = 3;
const STEP_MS = 600_000;
const CATCH_UP_MS = 3_600_000;

/** Contract 3 (Task) and contract 15 as a readable model. The database must agree with it. */
export class ScheduleModel {
  readonly tasks = new Map<string, Expected>();
  readonly open = new Map<string, Open>();

  of(id: string): Expected {
    return this.tasks.get(id) as Expected;
  }

  /** Returns the pending or current firing of a task. */
  firing(task: Expected): Firing {
    return task.firings.get(task.runNo) as Firing;
  }

  gateOf(id: string): Open | undefined {
    const { runNo, status } = this.of(id);
    if (status !== "pending") return undefined;
    return [...this.open.values()].find((one) =>
      one.task === id && one.kind === "gate" && one.runNo === runNo
    );
  }

  /** Fires due tasks, queued ones first. Returns the executions that a replacement must end. */
  tick(now: number): string[] {
    const replaced: string[] = [];
    for (const [id, task] of this.tasks) {
      if (task.queuedAt !== null && task.status === "scheduled" && !task.paused) {
        const { queuedAt } = task;
        task.queuedAt = null;
        if (task.nextAt === queuedAt) task.nextAt = null;
        this.#fire(task, queuedAt);
      }
      if (task.nextAt === null || task.paused || task.nextAt > now) continue;
      if (task.type === "countdown") this.#fire(task, task.nextAt);
      else replaced.push(...this.#due(id, task, now));
      if (task.type === "countdown") task.nextAt = null;
    }
    return replaced;
  }

  #due(id: string, task: Expected, now: number): string[] {
    const last = Math.min(now, task.until ?? now);
    const latest = Math.floor(last / STEP_MS) * STEP_MS;
    const next = this.#next(task, now);
    if (task.status === "scheduled") {
      task.nextAt = next;
      if (now - latest <= CATCH_UP_MS) this.#fire(task, latest);
      else if (next === null) this.#end(task, "completed");
      return [];
    }
    task.nextAt = next;
    const begun = task.status === "running" || this.gateOf(id) !== undefined;
    if (!begun || task.overlap === "skip" || task.overlap === "queue" && task.queuedAt !== null) return [];
    task.queuedAt = latest;
    const open = this.open.get(task.execution ?? "");
    if (task.overlap !== "replace" || task.status !== "running" || open === undefined) return [];
    open.marked = true;
    return [task.execution ?? ""];
  }

  /** Returns the first due task of each worker, in the dispatcher's order. */
  heads(now: number): string[] {
    const heads = new Map<string, [string, Expected]>();
    for (const [id, task] of this.tasks) {
      if (task.status !== "pending" || (task.dueAt ?? Infinity) > now) continue;
      const head = heads.get(task.worker);
      const due = task.dueAt ?? 0;
      const before = head?.[1].dueAt ?? 0;
      if (head === undefined || due < before || due === before && id < head[0]) {
        heads.set(task.worker, [id, task]);
      }
    }
    return [...heads.values()].map(([id]) => id).sort();
  }

  isFree(worker: string): boolean {
    return ![...this.open.values()].some((one) => one.worker === worker);
  }

  /** Starts a task's gate or run. Returns null when its gate already runs. */
  begin(id: string, executionId: string): "gate" | "run" | null {
    const task = this.of(id);
    if (this.gateOf(id) !== undefined) return null;
    const firing = this.firing(task);
    const kind = task.gate && !(firing.gateExit === 0 && firing.passed) ? "gate" : "run";
    const { worker, runNo } = task;
    this.open.set(executionId, { task: id, worker, kind, runNo, attempt: task.attempt + 1, marked: false });
    if (kind === "run") this.#start(task, executionId);
    else Object.assign(firing, { status: "gating", gateExit: null });
    return kind;
  }

  #start(task: Expected, executionId: string): void {
    task.status = "running";
    task.attempt++;
    task.runs++;
    task.execution = executionId;
    const firing = this.firing(task);
    firing.status = "running";
    firing.passed = true;
  }

  /** Returns whether a gate's answer still matters. */
  isWanted({ task: id, runNo }: Open): boolean {
    const { status, overlap, queuedAt, runNo: present } = this.of(id);
    return status === "pending" && present === runNo && !(overlap === "replace" && queuedAt !== null);
  }

  endGate(executionId: string, how: GateEnd, now: number): void {
    const gate = this.open.get(executionId) as Open;
    const task = this.of(gate.task);
    const firing = task.firings.get(gate.runNo) as Firing;
    this.open.delete(executionId);
    if (task.status !== "pending" || task.worker !== gate.worker && how !== "lost") {
      firing.status = task.status === "pending" ? "pending" : "cancelled";
      return;
    }
    if (how === "pass") {
      firing.gateExit = 0;
      this.#start(task, executionId);
      this.open.set(executionId, { ...gate, kind: "run", attempt: task.attempt });
    } else if (how === "again") {
      firing.status = "pending";
    } else if (how === "lost" && task.attempt + 1 < MODEL_ATTEMPTS) {
      task.attempt++;
      task.dueAt = now + getRetryDelayMs(task.attempt);
      firing.status = "pending";
    } else {
      const exit = how === "skip" ? 1 : how === "fail" ? 2 : null;
      const status = how === "skip" ? "gated" : how === "replaced" ? "cancelled" : "failed";
      Object.assign(firing, { status, gateExit: exit });
      if (task.type === "countdown") this.#end(task, how === "skip" ? "completed" : status as "failed");
      else if (how === "skip") this.#again(task, null, false, now);
      else this.#again(task, status, how === "fail", now);
    }
  }

  endRun(executionId: string, how: RunEnd, now: number): void {
    const run = this.open.get(executionId) as Open;
    const task = this.of(run.task);
    const firing = task.firings.get(run.runNo) as Firing;
    this.open.delete(executionId);
    const lost = how === "lost" && run.attempt < MODEL_ATTEMPTS;
    if (task.status !== "running") {
      firing.status = how === "stopped" || lost ? "cancelled" : how === "lost" ? "failed" : how;
      return;
    }
    if (how === "stopped") {
      task.status = firing.status = "pending";
      task.attempt--;
      task.runs--;
    } else if (lost) {
      task.status = firing.status = "pending";
      task.dueAt = now + getRetryDelayMs(run.attempt);
    } else {
      firing.status = how === "lost" ? "failed" : how;
      if (task.type === "scheduled") this.#again(task, firing.status, how === "failed", now);
      else this.#end(task, firing.status);
    }
  }

  // Ends a turn of a schedule. `last` is null for a turn that a gate skipped.
  #again(task: Expected, last: string | null, counts: boolean, now: number): void {
    if (last !== null) {
      task.last = last;
      task.runsEnded++;
      task.failures = last === "completed" ? 0 : counts ? task.failures + 1 : task.failures;
    }
    const done = last !== null && task.maxRuns !== null && task.runsEnded >= task.maxRuns;
    const next = done ? null : this.#next(task, now);
    if (next === null && (done || task.queuedAt === null)) return this.#end(task, "completed");
    task.status = "scheduled";
    task.attempt = 0;
    task.dueAt = null;
    task.nextAt = (task.nextAt !== null && task.nextAt > now ? task.nextAt : next) ?? task.queuedAt;
    if (!counts || task.paused || task.pauseAfter === 0 || task.failures < task.pauseAfter) return;
    task.paused = true;
    task.queuedAt = null;
  }

  cancel(id: string): boolean {
    const task = this.of(id);
    const may = task.status === "pending" || task.status === "scheduled" ||
      task.status === "running" && task.type === "scheduled";
    if (may) this.#cancel(task);
    return may;
  }

  cancelAll(which: (task: Expected) => boolean): number {
    const active = [...this.tasks.values()].filter((task) =>
      which(task) && ["pending", "scheduled", "running"].includes(task.status)
    );
    for (const task of active) this.#cancel(task);
    return active.length;
  }

  /** Cancels a run. The cancellation ends its task, unless the task is a schedule. */
  mark(executionId: string): void {
    const open = this.open.get(executionId) as Open;
    const task = this.of(open.task);
    open.marked = true;
    if (task.type !== "scheduled" && task.status === "running") this.#end(task, "cancelled");
  }

  runNow(id: string, now: number): boolean {
    const task = this.of(id);
    if (task.status === "pending") return task.type !== "immediate";
    if (task.status !== "scheduled") return false;
    this.#fire(task, now);
    if (task.type !== "scheduled") task.nextAt = null;
    return true;
  }

  /** Returns false for a resume without a next time, and for an ended task. */
  pause(id: string, paused: boolean, now: number): boolean {
    const task = this.of(id);
    if (!["pending", "scheduled", "running"].includes(task.status)) return false;
    if (task.paused === paused) return true;
    if (paused) {
      task.paused = true;
      task.queuedAt = null;
      return true;
    }
    const next = this.#next(task, now);
    if (next === null) return false;
    Object.assign(task, { paused, failures: 0, nextAt: next });
    return true;
  }

  change(id: string, change: Partial<Pick<Expected, "gate" | "overlap" | "worker">>): boolean {
    const task = this.of(id);
    if (task.type === "immediate" || !["pending", "scheduled", "running"].includes(task.status)) return false;
    Object.assign(task, change);
    return true;
  }

  #fire(task: Expected, at: number): void {
    Object.assign(task, { status: "pending", dueAt: at, attempt: 0, runNo: task.runNo + 1 });
    task.firings.set(task.runNo, { status: "pending", gateExit: null, passed: false });
  }

  #cancel(task: Expected): void {
    const firing = task.firings.get(task.runNo);
    if (firing?.status === "pending") firing.status = "cancelled";
    this.#end(task, "cancelled");
  }

  #end(task: Expected, status: string): void {
    Object.assign(task, { status, nextAt: null, dueAt: null, queuedAt: null });
  }

  #next({ until }: Expected, now: number): number | null {
    const next = findNextOccurrence(MODEL_CRON, "UTC", now);
    return next === null || until !== null && next > until ? null : next;
  }
}
