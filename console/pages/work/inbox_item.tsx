import { Link } from "wouter-preact";
import { api, ask } from "../../live/api.ts";
import type { InboxItem } from "../../live/inbox.ts";
import { may } from "../../live/session.ts";
import { Act } from "../../parts/button.tsx";
import { firstLine } from "../../parts/format.ts";
import { Status } from "../../parts/status.tsx";
import { Ago } from "../../parts/time.tsx";
import { attempt } from "../../parts/toast.tsx";
import { failureWord } from "./failure.ts";

/** Something that needs a person: where it is looked at, and what most often is done about it. */
export function ItemRow({ item }: { item: InboxItem }) {
  const { href, status, title, note } = shownAs(item);
  const action = actionOf(item);
  return (
    <div class="row needs">
      <Link href={href} class="row-link">
        <Status of={status} bare />
        <span class="row-main">
          <span class="row-title">{firstLine(title)}</span>
          <span class="row-note">{firstLine(note)}</span>
        </span>
        {item.kind !== "engine_limited" && (
          <span class="row-side">
            <Ago at={item.at} />
          </span>
        )}
      </Link>
      {action !== null && may(action.scope) && (
        <Act
          class="small"
          label={`${action.words}: ${firstLine(title)}`}
          run={() => attempt(action.run, action.done)}
        >
          {action.words}
        </Act>
      )}
    </div>
  );
}

interface Shown {
  href: string;
  status: string;
  title: string;
  note: string;
}

function shownAs(item: InboxItem): Shown {
  const { title, detail, worker_name, worker_id, execution_id, message_id, task_id } = item;
  switch (item.kind) {
    case "question":
      return { href: "/console", status: "question", title, note: `${worker_name} asks` };
    case "run_failed": {
      const failure = failureWord(/^\w+/.exec(detail)?.[0] ?? "");
      return {
        href: `/console/executions/${execution_id}`,
        status: "failed",
        title,
        note: `${worker_name} · ${failure}`,
      };
    }
    case "message_failed":
      return { href: messagePath(message_id), status: "failed", title, note: detail };
    case "undelivered":
      return { href: messagePath(message_id), status: "undelivered", title, note: detail };
    case "engine_limited":
      return { href: "/console/budgets", status: "limited", title: `${title} waits`, note: detail };
    case "budget_holds":
      return {
        href: "/console/budgets",
        status: "hard",
        title: `The budget ${title} is used up`,
        note: "Tasks wait for it",
      };
    case "schedule_paused":
      return {
        href: `/console/schedules/${task_id}`,
        status: "paused",
        title: `${firstLine(title)} is paused`,
        note: [worker_name, detail].filter(Boolean).join(" · "),
      };
    case "worker_paused":
      return {
        href: `/console/workers/${worker_id}`,
        status: "paused",
        title: `${worker_name} is paused`,
        note: "Its tasks wait until it goes on",
      };
  }
}

interface Action {
  words: string;
  scope: string;
  run: () => Promise<unknown>;
  done: string;
}

function actionOf(item: InboxItem): Action | null {
  const { kind, execution_id, engine, task_id, worker_id, message_id } = item;
  switch (kind) {
    case "run_failed": {
      const params = { path: { id: execution_id } };
      return {
        words: "Run again",
        scope: "write:executions",
        run: () => ask(api.POST("/api/executions/{id}/retry", { params, body: {} })),
        done: "It runs again",
      };
    }
    case "undelivered":
      return message_id === "" ? null : {
        words: "Send again",
        scope: "write:messages",
        run: () => resend(item),
        done: "It is being sent again",
      };
    case "engine_limited":
      return {
        words: "Try now",
        scope: "write:engines",
        run: () => ask(api.POST("/api/engines/{name}/lift", { params: { path: { name: engine } } })),
        done: `${engine} goes on`,
      };
    case "schedule_paused": {
      const params = { path: { id: task_id } };
      return {
        words: "Resume",
        scope: "write:tasks",
        run: () => ask(api.PUT("/api/tasks/{id}", { params, body: { paused: false } })),
        done: "It goes on with its next time",
      };
    }
    case "worker_paused": {
      const params = { path: { id: worker_id } };
      return {
        words: "Resume",
        scope: "write:workers",
        run: () => ask(api.PUT("/api/workers/{id}", { params, body: { paused: false } })),
        done: "It goes on",
      };
    }
    default:
      return null;
  }
}

// The item tells the message that was answered; which of its replies was given up is told by their times.
async function resend({ message_id, at }: InboxItem): Promise<void> {
  const trace = await ask(api.GET("/api/messages/{id}/trace", { params: { path: { id: message_id } } }));
  const lost = trace.replies.filter(({ status, created_at }) => status === "failed" && created_at === at);
  for (const { id } of lost) await ask(api.POST("/api/messages/{id}/resend", { params: { path: { id } } }));
}

function messagePath(id: string): string {
  return `/console/messages/${encodeURIComponent(id)}`;
}
