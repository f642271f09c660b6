import { Check, ChevronRight, Clock } from "lucide-preact";
import { useState } from "preact/hooks";
import { api, load } from "../../live/api.ts";
import { buildItemKey } from "../../live/notifications.ts";
import { hasScope } from "../../live/session.ts";
import { Button } from "../../parts/button.tsx";
import { takeFirstLine } from "../../parts/format.ts";
import { Row } from "../../parts/listing.tsx";
import { Menu } from "../../parts/menu.tsx";
import type { Selection } from "../../parts/selection.ts";
import { Status } from "../../parts/status.tsx";
import { Ago } from "../../parts/time.tsx";
import { formatFailure } from "./failure.ts";
import { canDismiss, dismissItems, retryItems, snoozeItems, SNOOZES } from "./inbox_actions.ts";
import { formatDetail, type InboxGroup, type InboxItem, isDismissible } from "./inbox_groups.ts";

/** Items with the same cause as one row. Its button shows each of them. */
export function InboxGroupRow({ group, selection }: { group: InboxGroup; selection: Selection }) {
  const [open, setOpen] = useState(false);
  const { items } = group;
  const [first] = items;
  const name = items.every(({ title }) => title === first.title) ? takeFirstLine(first.title) : "";
  if (items.length === 1) return <InboxRow item={first} selection={selection} />;
  const keys = items.map(buildItemKey);
  const selected = keys.every((key) => selection.ids.has(key));
  const title = name || formatDetail(first) || describe(first).note;
  return (
    <div class="inbox-group">
      <div class="row needs">
        <SelectBox
          name={title}
          checked={selected}
          onChange={() =>
            selected
              ? selection.set([...selection.ids].filter((id) => !keys.includes(id)))
              : selection.set([...selection.ids, ...keys])}
        />
        <button type="button" class="row-link" aria-expanded={open} onClick={() => setOpen(!open)}>
          <Status value={describe(first).status} bare />
          <span class="row-main">
            <span class="row-title">
              <span class="number">{items.length} ×</span> {title}
            </span>
            <span class="row-note">
              {[first.worker_name, name && formatDetail(first)].filter(Boolean).join(" · ")}
            </span>
          </span>
          <span class="row-side">
            <Ago at={first.at} />
          </span>
          <ChevronRight size={16} class="chevron" aria-hidden="true" />
        </button>
        {first.kind === "run_failed" && hasScope("write:executions") && (
          <Button
            class="small"
            label={`Run all again: ${title}`}
            press={() => retryItems(items)}
          >
            Run all again
          </Button>
        )}
        <HideButtons items={items} name={title} />
      </div>
      {open && items.map((item) => <InboxRow key={buildItemKey(item)} item={item} selection={selection} />)}
    </div>
  );
}

function InboxRow({ item, selection }: { item: InboxItem; selection: Selection }) {
  const { href, status, title, note, action } = describe(item);
  const name = takeFirstLine(title);
  const key = buildItemKey(item);
  return (
    <Row
      href={href}
      status={status}
      title={name}
      notes={[takeFirstLine(note)]}
      side={item.kind !== "engine_limited" && <Ago at={item.at} />}
      before={
        <SelectBox
          name={name}
          checked={selection.ids.has(key)}
          onChange={() => selection.toggle(key)}
        />
      }
    >
      {action !== undefined && hasScope(action.scope) && (
        <Button class="small" label={`${action.label}: ${name}`} press={action.run} done={action.done}>
          {action.label}
        </Button>
      )}
      <HideButtons items={[item]} name={name} />
    </Row>
  );
}

function SelectBox({ name, checked, onChange }: { name: string; checked: boolean; onChange: () => void }) {
  if (!canDismiss()) return null;
  return (
    <input
      type="checkbox"
      class="inbox-tick"
      aria-label={`Select ${name}`}
      checked={checked}
      onChange={onChange}
    />
  );
}

function HideButtons({ items, name }: { items: readonly InboxItem[]; name: string }) {
  if (!canDismiss()) return null;
  return (
    <span class="inbox-hide">
      <SnoozeMenu items={items} label={`Snooze: ${name}`} iconOnly />
      {items.every(isDismissible) && (
        <Button
          icon={Check}
          class="icon small"
          label={`Dismiss: ${name}`}
          title="Dismiss"
          press={() => dismissItems(items)}
        />
      )}
    </span>
  );
}

export function SnoozeMenu(
  { items, label, iconOnly = false }: { items: readonly InboxItem[]; label: string; iconOnly?: boolean },
) {
  return (
    <Menu icon={Clock} label={label} iconOnly={iconOnly} small>
      {SNOOZES.map(([hours, text]) => (
        <Button
          key={hours}
          class="small"
          press={() => snoozeItems(items, hours)}
        >
          {text}
        </Button>
      ))}
    </Menu>
  );
}

interface Description {
  href: string;
  status: string;
  title: string;
  note: string;
  action?: { label: string; scope: string; run: () => Promise<unknown>; done?: string };
}

const RESUME = { paused: false };

function describe(item: InboxItem): Description {
  const { title, detail, worker_name, worker_id, execution_id, message_id, task_id, engine } = item;
  const message = `/console/messages/${encodeURIComponent(message_id)}`;
  const run = `/console/executions/${execution_id}`;
  const about = [worker_name, detail].filter(Boolean).join(" · ");
  switch (item.kind) {
    case "question":
      return { href: "/console", status: "question", title, note: `${worker_name} asks` };
    case "run_failed": {
      return {
        href: run,
        status: "failed",
        title,
        note: [worker_name, formatDetail(item) || formatFailure(/^\w+/.exec(detail)?.[0] ?? "")].join(" · "),
        action: {
          label: "Run again",
          scope: "write:executions",
          run: () => retryItems([item]),
        },
      };
    }
    case "task_stopped":
      return { href: `/console/tasks/${task_id}`, status: "cancelled", title, note: about };
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
        note: about,
        action: {
          label: "Resume",
          scope: "write:tasks",
          run: () => load(api.PUT("/api/tasks/{id}", { params: { path: { id: task_id } }, body: RESUME })),
          done: "Schedule resumed",
        },
      };
    case "secret_lost":
      return {
        href: "/console/system/secrets",
        status: "failed",
        title: `The secret ${title} is lost`,
        note: detail,
      };
    case "launcher_paused":
      return {
        href: "/console/runners",
        status: "paused",
        title: `The launcher ${title} is paused`,
        note: detail,
        action: {
          label: "Resume",
          scope: "write:runners",
          run: () => load(api.POST("/api/launchers/{name}/resume", { params: { path: { name: title } } })),
          done: `${title} resumed`,
        },
      };
    case "rounds_over":
      return { href: run, status: "failed", title, note: about };
    case "push_failed":
      return { href: run, status: "failed", title: `${title} was not pushed`, note: about };
    case "worker_paused":
      return {
        href: `/console/workers/${worker_id}`,
        status: "paused",
        title: `${worker_name} is paused`,
        note: "Its tasks wait until you resume it",
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
