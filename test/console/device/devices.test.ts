import type { BrowserContext, CDPSession, Page, Worker } from "playwright-core";
import { expect, it } from "vitest";
import { findViolations } from "../../harness/axe.ts";
import { describeConsole, DESK, PHONE } from "../../harness/browser.ts";
import { openApp } from "../../harness/service/app.ts";
import { waitUntil } from "../../harness/wait.ts";
import { PushService } from "../../platform/fakes/push_service.ts";

const LOOPBACK = { push: { allow_private: true } };

/** Returns the console's service worker when it is active. */
async function findWorker(context: BrowserContext, page: Page): Promise<Worker> {
  const worker = context.serviceWorkers()[0] ?? await context.waitForEvent("serviceworker");
  await page.waitForFunction(
    "navigator.serviceWorker.getRegistration('/console/').then((it) => it?.active?.state === 'activated')",
  );
  return worker;
}

/** Returns a function that delivers a push to the service worker as the browser's push service would. */
async function openDelivery(
  session: CDPSession,
  origin: string,
): Promise<(message: unknown) => Promise<void>> {
  const found = Promise.withResolvers<string>();
  session.on("ServiceWorker.workerRegistrationUpdated", ({ registrations }) => {
    const own = registrations.find(({ scopeURL }) => scopeURL === `${origin}/console/`);
    if (own !== undefined) found.resolve(own.registrationId);
  });
  await session.send("ServiceWorker.enable");
  const registrationId = await found.promise;
  return async (message) => {
    const data = JSON.stringify(message);
    await session.send("ServiceWorker.deliverPushMessage", { origin, registrationId, data });
  };
}

/** Makes the browser subscribe at the fake push service, because Chromium's is not reachable in tests. */
function buildSubscribeScript(subscription: unknown): string {
  return `(() => {
    let current = null;
    const subscribe = async ({ applicationServerKey }) => current = {
      options: { applicationServerKey: applicationServerKey.buffer },
      toJSON: () => (${JSON.stringify(subscription)}),
      unsubscribe: async () => (sessionStorage.setItem("unsubscribed", "yes"), current = null, true),
    };
    PushManager.prototype.subscribe = subscribe;
    PushManager.prototype.getSubscription = async () => current;
  })()`;
}

/** Passes requests on to a service, until its console is replaced by another version. */
class Front implements AsyncDisposable {
  isNew = false;
  readonly #server: Deno.HttpServer<Deno.NetAddr>;

  constructor(target: string) {
    this.#server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen: () => {} }, (request) => {
      const { pathname } = new URL(request.url);
      if (!this.isNew) return fetch(target + pathname, { headers: { accept: "*/*" } });
      if (pathname.includes("/assets/") || pathname.endsWith("/sw.js")) {
        return new Response("", { status: 404 });
      }
      return new Response("<title>new</title><p>The new console</p>", {
        headers: { "content-type": "text/html" },
      });
    });
  }

  get url(): string {
    return `http://127.0.0.1:${this.#server.addr.port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.shutdown();
  }
}

describeConsole("the installed console", ({ open, visit }) => {
  it("can be installed: its manifest has no error, and its service worker is active", async () => {
    await using one = await open("/console/");
    const { visitor, page } = one;
    await findWorker(visitor.context, page);
    const session = await visitor.context.newCDPSession(page);
    const { errors, url } = await session.send("Page.getAppManifest");
    expect([url, errors]).toEqual([`${visitor.url}/console/manifest.webmanifest`, []]);
    const { installabilityErrors } = await session.send("Page.getInstallabilityErrors");
    expect(installabilityErrors.filter(({ errorId }) => errorId !== "in-incognito")).toEqual([]);
  });

  it("shows a push as a notification, whose click opens its page", async () => {
    await using one = await open("/console/");
    const { visitor, page } = one;
    await visitor.context.grantPermissions(["notifications"], { origin: visitor.url });
    const worker = await findWorker(visitor.context, page);
    const session = await visitor.context.newCDPSession(page);
    const deliver = await openDelivery(session, visitor.url);
    const path = "/console/schedules";
    const shown = () =>
      worker.evaluate(
        "registration.getNotifications().then((all) => all.map((one) => [one.title, one.body]))",
      );
    // A busy browser may drop a message. One that comes again replaces the first.
    const deliverAndShow = async () => {
      await deliver({ title: "Ada", body: "Finished", path, tag: "t1" });
      return await shown();
    };
    await expect.poll(deliverAndShow).toEqual([["Ada", "Finished"]]);
    expect(await deliverAndShow()).toEqual([["Ada", "Finished"]]);
    // Only a browser can create a trusted click, so the test replaces the part that needs one.
    await worker.evaluate(`registration.getNotifications().then(([notification]) => {
      const event = new NotificationEvent("notificationclick", { notification });
      Object.defineProperty(event, "waitUntil", { value: (work) => work.catch(() => {}) });
      self.dispatchEvent(event);
    })`);
    await page.getByRole("heading", { name: "Schedules" }).waitFor();
    expect(new URL(page.url()).pathname).toBe(path);
  });

  it("starts without the service with a page that says so, and stores nothing but that page", async () => {
    await using one = await open("/console/", { allowed: /status of 503/ });
    const { app, visitor, page } = one;
    const worker = await findWorker(visitor.context, page);
    await page.reload();
    await page.getByRole("heading", { name: "Inbox" }).waitFor();
    const stored = await worker.evaluate(`caches.keys().then((names) => Promise.all(names.map((name) =>
      caches.open(name).then((cache) => cache.keys())))).then((all) => all.flat().map(({ url }) => new URL(url).pathname))`);
    expect((stored as string[]).map((path) => path.replace(/-\w+\./, ".")).sort()).toEqual([
      "/console/assets/console.css",
      "/console/assets/icon.svg",
      "/console/assets/offline.html",
    ]);
    await app.stop();
    await page.goto(`${visitor.url}/console/executions`);
    await page.getByRole("heading", { name: "The service does not respond." }).waitFor();
    expect(await findViolations(page)).toEqual([]);
    await page.screenshot({ path: await findPicturePath("offline") });
    await page.getByRole("link", { name: "Try again" }).click();
    await page.getByRole("heading", { name: "The service does not respond." }).waitFor();
  });

  it("shows a new version of the console after an upgrade, never the old one", async () => {
    await using app = await openApp();
    await using front = new Front(app.url);
    await using visitor = await visit(front.url);
    await visitor.goto("/console/");
    await findWorker(visitor.context, visitor.page);
    await visitor.page.reload();
    await visitor.page.getByRole("heading", { name: /^Sign in/ }).waitFor();
    front.isNew = true;
    await visitor.page.reload();
    await visitor.page.getByText("The new console").waitFor();
    await visitor.goto("/console/executions");
    await visitor.page.getByText("The new console").waitFor();
  });
});

describeConsole("notifications on a device", ({ open }) => {
  for (const view of [DESK, PHONE]) {
    it(`are off until a user turns them on, and end with the logout, at ${view.width} px`, async () => {
      await using service = new PushService();
      await using one = await open("/console/", { config: LOOPBACK, view });
      const { app, ada, visitor, page } = one;
      await visitor.context.grantPermissions(["notifications"], { origin: visitor.url });
      await visitor.context.addInitScript({ content: buildSubscribeScript(service.subscribe("phone")) });
      await visitor.goto("/console/account");
      await page.getByText("No devices yet.").waitFor();
      expect(
        await page.getByRole("group", { name: /^On this device/ }).getByRole("checkbox", { checked: true })
          .count(),
      )
        .toBe(0);
      await page.getByLabel(/^Needs you/).check();
      await page.getByText(/\(this device\)/).waitFor();
      await page.getByLabel(/^Finished/).check();
      await expect.poll(() => page.getByLabel(/^Finished/).isChecked()).toBe(true);
      const devices = () => app.call("GET /api/push/devices");
      await expect.poll(async () => (await devices())[0]?.tell).toEqual({
        ...{ needs_you: true, finished: true, text: false },
      });
      await app.call(`PUT /api/workers/${ada.id}`, { paused: true });
      await waitUntil("the push arrives", () => service.got.length > 0);
      expect(service.got[0]?.message).toMatchObject({
        title: "Ada",
        body: "Worker paused",
        path: "/console/",
      });
      expect(service.faults).toEqual([]);
      await page.reload();
      await page.getByText(/\(this device\)/).waitFor();
      expect(await findViolations(page)).toEqual([]);
      await page.getByRole("heading", { name: "Notifications" }).scrollIntoViewIfNeeded();
      expect(await page.evaluate("document.documentElement.scrollWidth > innerWidth")).toBe(false);
      await page.screenshot({ path: await findPicturePath(`devices-${view.width}`), fullPage: true });
      await page.getByRole("button", { name: "Sign out of this browser" }).click();
      await page.getByRole("heading", { name: /^Sign in/ }).waitFor();
      await expect.poll(devices).toEqual([]);
      expect(await page.evaluate("localStorage.getItem('svc.device')")).toBe(null);
    });
  }
});

/** Returns a path for a picture in SVC_TEST_PICTURES, else in a directory that is thrown away. */
async function findPicturePath(name: string): Promise<string> {
  return `${
    Deno.env.get("SVC_TEST_PICTURES") ?? await Deno.makeTempDir({ prefix: "svc-test-" })
  }/${name}.png`;
}
