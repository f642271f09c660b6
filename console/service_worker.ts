// The service worker of the console: shows notifications, and answers with one own page while the service does not respond.
// It never answers with a stored console, so a new version of the service always shows its own.

/** The events of a service worker. The library of the console's types is that of pages. */
interface WorkerEvent extends Event {
  waitUntil: (work: Promise<unknown>) => void;
}
interface FetchEvent extends WorkerEvent {
  request: Request;
  respondWith: (response: Promise<Response>) => void;
}
interface PushEvent extends WorkerEvent {
  data: { json: () => unknown } | null;
}
interface ClickEvent extends WorkerEvent {
  notification: Notification & { data: { path: string } };
}
interface WindowClient {
  url: string;
  focus: () => Promise<unknown>;
  postMessage: (message: unknown) => void;
}
interface WorkerScope {
  registration: ServiceWorkerRegistration;
  clients: {
    claim: () => Promise<void>;
    matchAll: (options: { type: "window"; includeUncontrolled: boolean }) => Promise<WindowClient[]>;
    openWindow: (path: string) => Promise<unknown>;
  };
  skipWaiting: () => Promise<void>;
  addEventListener: <E extends WorkerEvent>(type: string, listen: (event: E) => void) => void;
}

// The build replaces these names. All files are named after their content.
declare const OFFLINE_PAGE: string;
declare const OFFLINE_FILES: readonly string[];
declare const ICON: string;

const scope = self as unknown as WorkerScope;
const files = [OFFLINE_PAGE, ...OFFLINE_FILES];
// Another list of files gets another cache.
const CACHE = `svc ${files.join(" ")}`;

scope.addEventListener("install", (event) => {
  event.waitUntil(caches.open(CACHE).then((cache) => cache.addAll(files)).then(() => scope.skipWaiting()));
});

scope.addEventListener("activate", (event) => {
  event.waitUntil(removeOldCaches().then(() => scope.clients.claim()));
});

async function removeOldCaches(): Promise<void> {
  const old = (await caches.keys()).filter((name) => name.startsWith("svc ") && name !== CACHE);
  await Promise.all(old.map((name) => caches.delete(name)));
}

scope.addEventListener<FetchEvent>("fetch", (event) => {
  const { request } = event;
  if (request.mode === "navigate") event.respondWith(fetch(request).catch(() => find(OFFLINE_PAGE)));
  else if (files.includes(new URL(request.url).pathname)) {
    event.respondWith(fetch(request).catch(() => find(request.url)));
  }
});

async function find(url: string): Promise<Response> {
  return await caches.match(url) ?? Response.error();
}

interface Message {
  title: string;
  body: string;
  path: string;
  tag: string;
}

scope.addEventListener<PushEvent>("push", (event) => {
  const { title = "svc", body = "", path = "/console/", tag = "svc" } = readMessage(event);
  event.waitUntil(
    // A message that is sent again replaces the first one, because it has the same tag.
    scope.registration.showNotification(title, { body, tag, icon: ICON, data: { path } }),
  );
});

function readMessage({ data }: PushEvent): Partial<Message> {
  try {
    return data?.json() as Partial<Message>;
  } catch {
    return {};
  }
}

scope.addEventListener<ClickEvent>("notificationclick", (event) => {
  const { notification } = event;
  notification.close();
  event.waitUntil(openPage(notification.data.path));
});

/** Shows a page of the console in an open window of it, else in a new one. */
async function openPage(path: string): Promise<void> {
  const windows = await scope.clients.matchAll({ type: "window", includeUncontrolled: true });
  const open = windows.find(({ url }) => /^\/(console(\/|$)|$)/.test(new URL(url).pathname));
  if (open === undefined) return void await scope.clients.openWindow(path);
  open.postMessage({ path });
  await open.focus();
}
