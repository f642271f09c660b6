import type { ComponentType } from "preact";
import { useLayoutEffect, useReducer, useState } from "preact/hooks";
import type { PageProps } from "./live/address.ts";
import { Empty, Loading } from "./parts/notice.tsx";

/** The address of a page, and the import of its code, which happens when the page is first opened. */
interface Route {
  path: string;
  load: () => Promise<{ Page: ComponentType<PageProps> }>;
}

const SYSTEM = "/console/system";

export const PAGES: readonly Route[] = [
  { path: "/", load: () => import("./pages/work/inbox.tsx") },
  { path: "/console", load: () => import("./pages/work/inbox.tsx") },
  { path: "/console/executions", load: () => import("./pages/work/executions.tsx") },
  { path: "/console/executions/:id", load: () => import("./pages/work/execution.tsx") },
  { path: "/console/tasks", load: () => import("./pages/work/tasks.tsx") },
  { path: "/console/tasks/:id", load: () => import("./pages/work/task.tsx") },
  { path: "/console/schedules", load: () => import("./pages/work/schedules.tsx") },
  { path: "/console/schedules/new", load: () => import("./pages/work/schedule_form.tsx") },
  { path: "/console/schedules/:id", load: () => import("./pages/work/schedule.tsx") },
  { path: "/console/schedules/:id/edit", load: () => import("./pages/work/schedule_form.tsx") },
  { path: "/console/chat/:id?", load: () => import("./pages/chat/chat.tsx") },
  { path: "/console/messages", load: () => import("./pages/chat/messages.tsx") },
  { path: "/console/messages/:id", load: () => import("./pages/chat/message_trace.tsx") },
  { path: "/console/platforms", load: () => import("./pages/chat/platforms.tsx") },
  { path: "/console/workers", load: () => import("./pages/workers/workers.tsx") },
  { path: "/console/workers/new", load: () => import("./pages/workers/worker_form.tsx") },
  { path: "/console/workers/:id", load: () => import("./pages/workers/worker.tsx") },
  { path: "/console/workers/:id/edit", load: () => import("./pages/workers/worker_form.tsx") },
  { path: "/console/memory", load: () => import("./pages/workers/memory.tsx") },
  { path: "/console/costs", load: () => import("./pages/workers/costs.tsx") },
  { path: "/console/budgets", load: () => import("./pages/workers/budgets.tsx") },
  { path: "/console/runners", load: () => import("./pages/workers/runners.tsx") },
  { path: "/console/account", load: () => import("./pages/account/account.tsx") },
  { path: SYSTEM, load: () => import("./pages/system/overview.tsx") },
  { path: `${SYSTEM}/usage`, load: () => import("./pages/system/usage.tsx") },
  { path: `${SYSTEM}/settings`, load: () => import("./pages/system/settings.tsx") },
  { path: `${SYSTEM}/setup`, load: () => import("./pages/system/setup.tsx") },
  { path: `${SYSTEM}/events`, load: () => import("./pages/system/events.tsx") },
  { path: `${SYSTEM}/doctor`, load: () => import("./pages/system/doctor.tsx") },
  { path: `${SYSTEM}/users`, load: () => import("./pages/account/users.tsx") },
  { path: `${SYSTEM}/secrets`, load: () => import("./pages/account/secrets.tsx") },
  { path: `${SYSTEM}/webhooks`, load: () => import("./pages/system/webhooks.tsx") },
  { path: `${SYSTEM}/webhooks/:id`, load: () => import("./pages/system/webhook.tsx") },
  { path: `${SYSTEM}/backup`, load: () => import("./pages/system/backup.tsx") },
];

const RELOADED = "svc.reloaded";
const loaded = new Map<string, ComponentType<PageProps>>();

async function load(route: Route): Promise<void> {
  loaded.set(route.path, (await route.load()).Page);
  sessionStorage.removeItem(RELOADED);
}

/** Starts to load the page at this address while the session is being resumed. */
export function preloadPage(address: string): void {
  const route = PAGES.find(({ path }) =>
    new RegExp(`^${path.replace(/\/:\w+\?/, "(/[^/]+)?").replace(/:\w+/, "[^/]+")}/?$`).test(address)
  );
  // LazyPage loads again and shows the failure.
  if (route !== undefined) load(route).catch(() => {});
}

/** Shows a page when its code is loaded. After an upgrade, an open tab requests code that no longer exists, so it reloads once. */
export function LazyPage({ route, params }: { route: Route; params: PageProps["params"] }) {
  const [, redraw] = useReducer((drawn: number) => drawn + 1, 0);
  const [failed, setFailed] = useState(false);
  const Body = loaded.get(route.path);
  useLayoutEffect(() => {
    if (Body !== undefined) return;
    load(route).then(() => redraw(0), () => {
      if (sessionStorage.getItem(RELOADED) !== null) return setFailed(true);
      sessionStorage.setItem(RELOADED, "yes");
      location.reload();
    });
  }, [route.path]);
  if (failed) {
    return (
      <Empty title="Cannot load this page.">
        <p>The service may be restarting or updated. Reload in a moment.</p>
      </Empty>
    );
  }
  return Body === undefined ? <Loading /> : <Body params={params} />;
}
