import type { Api } from "../../../src/http/app.ts";
import { formatRelativeTime } from "../../terminal/column.ts";
import { escapeControls } from "../../terminal/visible.ts";
import type { BaseContext } from "../command.ts";

type Task = Pick<Api["GET /api/tasks/:id"]["response"], "status" | "held_by" | "reason" | "worker_id">;
type HeldBy = NonNullable<Task["held_by"]>;

/** Reports on stderr what blocks a task that a command waits for, once per cause. */
export class HoldNotice {
  readonly #context: BaseContext;
  /** The last cause on stderr, without its time. */
  #shown = "";
  #pausedCause = "";
  #pendingChecks = 0;

  constructor(context: BaseContext) {
    this.#context = context;
  }

  /** Shows the cause if it is new. `clear` removes the progress line before. Returns whether the task is on hold. */
  async show(task: Task, clear: () => void): Promise<boolean> {
    const cause = task.status === "pending" ? await this.#findCause(task) : "";
    // The text counts the time down, so it differs each time.
    const { kind, id } = task.held_by ?? {};
    const name = kind === undefined ? cause : `${kind} ${id}`;
    if (cause !== "" && name !== this.#shown) {
      clear();
      const { note, out } = this.#context;
      note(out.format === "json" ? JSON.stringify({ on_hold: cause }) : escapeControls(cause));
    }
    this.#shown = cause === "" ? "" : name;
    return cause !== "";
  }

  async #findCause(task: Task): Promise<string> {
    if (task.held_by !== null) return formatHold(task.held_by, task.reason);
    // Most tasks start soon, so only one that still waits at the second look costs this request.
    if (++this.#pendingChecks < 2) return "";
    if (this.#pendingChecks > 2) return this.#pausedCause;
    const { client } = this.#context;
    const params = { id: task.worker_id };
    const worker = await client.call("GET /api/workers/:id", { params }).catch(() => null);
    if (!worker?.value.paused) return "";
    const { name } = worker.value;
    return this.#pausedCause = `On hold: ${name} is paused.\nTo resume it: svc ctl worker resume ${
      quote(name)
    }`;
  }
}

/** Formats what blocks a task, until when, and the way out. */
function formatHold(hold: HeldBy, reason: string, now = Date.now()): string {
  const { kind, id, until, advice } = hold;
  if (kind === "task") {
    return `Waits for ${formatTasks(hold.ids ?? [id])}.\n${advice} Command: svc ctl task get ${id}`;
  }
  const why = reason.replace(/; resumes at [^;]*$/, "");
  const when = until === null ? "" : `, resumes ${formatRelativeTime(until, now)}`;
  const command = kind === "budget"
    ? `svc ctl budget lift ${quote(/^the budget "([^"\\\\]+)"/.exec(reason)?.[1] ?? id)} --for 1h`
    : kind === "engine"
    ? `svc ctl engine lift ${quote(id)}`
    : kind === "launch"
    ? "svc ctl launcher list"
    : kind === "runner"
    ? "svc ctl runner list"
    : "";
  return `On hold: ${why}${when}.\n${advice}${command === "" ? "" : ` Command: ${command}`}`;
}

function formatTasks(ids: readonly string[]): string {
  return ids.length === 1 ? `task ${ids[0]}` : `${ids.length} tasks: ${ids.join(", ")}`;
}

function quote(text: string): string {
  return /^[\w.:-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
