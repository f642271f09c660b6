import type { ComponentType } from "preact";
import { useLayoutEffect, useReducer, useState } from "preact/hooks";
import { Empty, Loading } from "./parts/notice.tsx";

/** What a page is given: the named parts of its address. */
export interface PageProps {
  params: Record<string, string | undefined>;
}

/** A page by its address; its code is loaded when it is first opened. */
interface Page {
  path: string;
  load: () => Promise<ComponentType<PageProps>>;
}

/** Every page. */
export const PAGES: readonly Page[] = [
  { path: "/", load: async () => (await import("./pages/work/inbox.tsx")).InboxPage },
  { path: "/console", load: async () => (await import("./pages/work/inbox.tsx")).InboxPage },
  { path: "/console/chat/:id?", load: async () => (await import("./pages/chat/chat.tsx")).ChatPage },
  {
    path: "/console/executions",
    load: async () => (await import("./pages/work/executions.tsx")).ExecutionsPage,
  },
  {
    path: "/console/executions/:id",
    load: async () => (await import("./pages/work/execution.tsx")).ExecutionPage,
  },
  { path: "/console/tasks", load: async () => (await import("./pages/work/tasks.tsx")).TasksPage },
  { path: "/console/tasks/:id", load: async () => (await import("./pages/work/task.tsx")).TaskPage },
  {
    path: "/console/schedules",
    load: async () => (await import("./pages/work/schedules.tsx")).SchedulesPage,
  },
  {
    path: "/console/schedules/new",
    load: async () => (await import("./pages/work/schedule_form.tsx")).ScheduleEditPage,
  },
  {
    path: "/console/schedules/:id",
    load: async () => (await import("./pages/work/schedule.tsx")).SchedulePage,
  },
  {
    path: "/console/schedules/:id/edit",
    load: async () => (await import("./pages/work/schedule_form.tsx")).ScheduleEditPage,
  },
  { path: "/console/workers", load: async () => (await import("./pages/workers/workers.tsx")).WorkersPage },
  {
    path: "/console/workers/new",
    load: async () => (await import("./pages/workers/worker_form.tsx")).WorkerEditPage,
  },
  { path: "/console/workers/:id", load: async () => (await import("./pages/workers/worker.tsx")).WorkerPage },
  {
    path: "/console/workers/:id/edit",
    load: async () => (await import("./pages/workers/worker_form.tsx")).WorkerEditPage,
  },
  {
    path: "/console/messages",
    load: async () => (await import("./pages/chat/messages.tsx")).MessagesPage,
  },
  {
    path: "/console/messages/:id",
    load: async () => (await import("./pages/chat/message_trace.tsx")).TracePage,
  },
  {
    path: "/console/budgets",
    load: async () => (await import("./pages/workers/budgets.tsx")).BudgetsPage,
  },
  {
    path: "/console/platforms",
    load: async () => (await import("./pages/chat/platforms.tsx")).PlatformsPage,
  },
  { path: "/console/runners", load: async () => (await import("./pages/workers/runners.tsx")).RunnersPage },
  { path: "/console/memory", load: async () => (await import("./pages/workers/memory.tsx")).MemoryPage },
  { path: "/console/system", load: async () => (await import("./pages/system/overview.tsx")).OverviewPage },
  {
    path: "/console/system/usage",
    load: async () => (await import("./pages/system/usage.tsx")).UsagePage,
  },
  {
    path: "/console/system/events",
    load: async () => (await import("./pages/system/events.tsx")).EventsPage,
  },
  {
    path: "/console/system/doctor",
    load: async () => (await import("./pages/system/doctor.tsx")).DoctorPage,
  },
  {
    path: "/console/system/users",
    load: async () => (await import("./pages/account/users.tsx")).UsersPage,
  },
  {
    path: "/console/system/webhooks",
    load: async () => (await import("./pages/system/webhooks.tsx")).WebhooksPage,
  },
  {
    path: "/console/system/webhooks/:id",
    load: async () => (await import("./pages/system/webhook.tsx")).WebhookPage,
  },
  {
    path: "/console/system/backup",
    load: async () => (await import("./pages/system/backup.tsx")).BackupPage,
  },
  { path: "/console/account", load: async () => (await import("./pages/account/account.tsx")).AccountPage },
];

const RELOADED = "svc.reloaded";
const loaded = new Map<string, ComponentType<PageProps>>();

async function load(page: Page): Promise<void> {
  loaded.set(page.path, await page.load());
  sessionStorage.removeItem(RELOADED);
}

/** Begins to load the page at this address, beside what has to be asked for before it can be shown. */
export function loadAhead(address: string): void {
  const page = PAGES.find(({ path }) =>
    new RegExp(`^${path.replace(/\/:\w+\?/, "(/[^/]+)?").replace(/:\w+/, "[^/]+")}/?$`).test(address)
  );
  // What fails now is asked for again, and told, when it is shown.
  if (page !== undefined) load(page).catch(() => {});
}

/** Shows a page when its code is here. After an upgrade an open tab asks for code that is gone: then it is loaded anew, once. */
export function LazyPage({ page, params }: { page: Page; params: PageProps["params"] }) {
  const [, redraw] = useReducer((drawn: number) => drawn + 1, 0);
  const [failed, setFailed] = useState(false);
  const Body = loaded.get(page.path);
  useLayoutEffect(() => {
    if (Body !== undefined) return;
    load(page).then(() => redraw(0), () => {
      if (sessionStorage.getItem(RELOADED) !== null) return setFailed(true);
      sessionStorage.setItem(RELOADED, "yes");
      location.reload();
    });
  }, [page.path]);
  if (failed) {
    return (
      <Empty title="This page could not be loaded.">
        <p>The service may have been updated or be away. Reload in a moment.</p>
      </Empty>
    );
  }
  return Body === undefined ? <Loading /> : <Body params={params} />;
}
