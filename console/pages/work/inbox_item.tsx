import { api, load, type Schemas } from "../../live/api.ts";
import { hasScope } from "../../live/session.ts";
import { Button } from "../../parts/button.tsx";
import { takeFirstLine } from "../../parts/format.ts";
import { Row } from "../../parts/listing.tsx";
import { Ago } from "../../parts/time.tsx";
import { formatFailure } from "./failure.ts";

type InboxItem = Schemas["InboxItem"];

export function InboxRow({ item }: { item: InboxItem }) {
  const { href, status, title, note, action } = describe(item);
  const name = takeFirstLine(title);
  return (
    <Row
      href={href}
      status={status}
      title={name}
      notes={[takeFirstLine(note)]}
      side={item.kind !== "engine_limited" && <Ago at={item.at} />}
    >
      {action !== undefined && hasScope(action.scope) && (
        <Button class="small" label={`${action.label}: ${name}`} press={action.run} done={action.done}>
          {action.label}
        </Button>
      )}
    </Row>
  );
}

interface Description {
  href: string;
  status: string;
  title: string;
  note: string;
  action?: { label: string; scope: string; run: () => Promise<unknown>; done: string };
}

const RESUME = { paused: false };

function describe(item: InboxItem): Description {
  const { title, detail, worker_name, worker_id, execution_id, message_id, task_id, engine } = item;
  const message = `/console/messages/${encodeURIComponent(message_id)}`;
  switch (item.kind) {
    case "question":
      return { href: "/console", status: "question", title, note: `${worker_name} asks` };
    case "run_failed": {
      const params = { path: { id: execution_id } };
      return {
        href: `/console/executions/${execution_id}`,
        status: "failed",
        title,
        note: `${worker_name} · ${formatFailure(/^\w+/.exec(detail)?.[0] ?? "")}`,
        action: {
          label: "Run again",
          scope: "write:executions",
          run: () => load(api.POST("/api/executions/{id}/retry", { params, body: {} })),
          done: "Run started again",
        },
      };
    }
    case "message_failed":
      return { href: message, status: "failed", title, note: detail };
    case "undelivered":
      return {
        ...{ href: message, status: "undelivered", title, note: detail },
        ...(message_id === "" ? {} : {
          action: {
            label: "Send again",
            scope: "write:messages",
            run: () => resend(item),
            done: "Sending again",
          },
        }),
      };
    case "engine_limited":
      return {
        href: "/console/budgets",
        status: "limited",
        title: `${title} is rate-limited`,
        note: detail,
        action: {
          label: "Try now",
          scope: "write:engines",
          run: () => load(api.POST("/api/engines/{name}/lift", { params: { path: { name: engine } } })),
          done: `${engine} resumed`,
        },
      };
    case "budget_holds":
      return {
        href: "/console/budgets",
        status: "hard",
        title: `Budget ${title} is used up`,
        note: "Tasks are waiting",
      };
    case "schedule_paused":
      return {
        href: `/console/schedules/${task_id}`,
        status: "paused",
        title: `${takeFirstLine(title)} is paused`,
        note: [worker_name, detail].filter(Boolean).join(" · "),
        action: {
          label: "Resume",
          scope: "write:tasks",
          run: () => load(api.PUT("/api/tasks/{id}", { params: { path: { id: task_id } }, body: RESUME })),
          done: "Schedule resumed",
        },
      };
    case "secret_lost":
      return { href: "/console/inbox", status: "failed", title: `The secret ${title} is lost`, note: detail };
    case "worker_paused":
      return {
        href: `/console/workers/${worker_id}`,
        status: "paused",
        title: `${worker_name} is paused`,
        note: "Its tasks are waiting",
        action: {
          label: "Resume",
          scope: "write:workers",
          run: () =>
            load(api.PUT("/api/workers/{id}", { params: { path: { id: worker_id } }, body: RESUME })),
          done: `${worker_name} resumed`,
        },
      };
  }
}

// The item has the id of the message. The time of the item identifies the undelivered replies.
async function resend({ message_id, at }: InboxItem): Promise<void> {
  const trace = await load(api.GET("/api/messages/{id}/trace", { params: { path: { id: message_id } } }));
  const lost = trace.replies.filter(({ status, created_at }) => status === "failed" && created_at === at);
  for (const { id } of lost) await load(api.POST("/api/messages/{id}/resend", { params: { path: { id } } }));
}
