import type { BrowserContext, Page } from "playwright-core";
import { expect, it } from "vitest";
import { type App, openApp, PASSWORD } from "../harness/service/app.ts";
import { describeConsole } from "../harness/browser.ts";
import { CLIENT, startRealProvider } from "../harness/fakes/openid.ts";
import { createUser, endSessions } from "../harness/model/people.ts";
import { findFreePort } from "../harness/service/port.ts";

/** The response that a page gets to a request with all credentials of its browser. */
interface PageResponse {
  status: number;
  body: Record<string, unknown>;
}

/** Sends a request from a page. Returns status 0 if the browser blocked the request. */
function sendFromPage(
  page: Page,
  url: string,
  body: unknown,
  headers: Record<string, string> = {},
): Promise<PageResponse> {
  return page.evaluate(async ([to, text, more]) => {
    try {
      const response = await fetch(to, {
        method: "POST",
        credentials: "include",
        headers: { "content-type": "application/json", ...more },
        body: text,
      });
      const answer = await response.text();
      return { status: response.status, body: answer === "" ? {} : JSON.parse(answer) };
    } catch {
      return { status: 0, body: {} };
    }
  }, [url, JSON.stringify(body), headers] as const);
}

const LOGIN = { username: "admin", password: PASSWORD, browser: true };

async function visit(context: BrowserContext, url: string): Promise<Page> {
  const page = await context.newPage();
  await page.goto(`${url}/livez`);
  return page;
}

/** Starts another web server on this host. */
function startForeignSite(): { url: string } & AsyncDisposable {
  const server = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen: () => {} },
    () => new Response("<h1>hello</h1>", { headers: { "content-type": "text/html" } }),
  );
  return { url: `http://127.0.0.1:${server.addr.port}`, [Symbol.asyncDispose]: () => server.shutdown() };
}

describeConsole("a login in a browser [USR-3]", ({ newContext }) => {
  it(
    "has two halves, a cookie that no script can read and a value for the page, and neither works alone",
    async () => {
      await using app = await openApp();
      const context = await newContext();
      const page = await visit(context, app.url);
      const login = await sendFromPage(page, `${app.url}/api/auth/login`, LOGIN);
      expect(login.status).toBe(200);
      expect(Object.keys(login.body).sort()).toEqual(["access_token", "expires_in", "session", "token_type"]);
      const [cookie] = await context.cookies(`${app.url}/api/auth`);
      expect(cookie).toMatchObject({ httpOnly: true, sameSite: "Strict", path: "/api/auth", secure: false });
      expect(await page.evaluate("document.cookie")).toBe("");
      const half = { "x-svc-session": String(login.body.session) };
      const renew = (headers: Record<string, string>) =>
        sendFromPage(page, `${app.url}/api/auth/refresh`, {}, headers);
      expect((await renew(half)).status).toBe(200);
      expect((await renew({})).status).toBe(400);
      expect((await renew({ "x-svc-session": "x".repeat(43) })).status).toBe(401);
      // The stored half without the cookie: another browser on the same machine.
      const other = await visit(await newContext(), app.url);
      expect((await sendFromPage(other, `${app.url}/api/auth/refresh`, {}, half)).status).toBe(401);
      // No combination of the halves is a refresh token.
      for (
        const refresh_token of [login.body.session, cookie?.value, `${cookie?.value}.${login.body.session}`]
      ) {
        expect((await app.send("POST /api/auth/refresh", { refresh_token })).status).toBe(401);
      }
      expect((await sendFromPage(page, `${app.url}/api/auth/logout`, {}, half)).status).toBe(204);
      expect(await context.cookies(`${app.url}/api/auth`)).toEqual([]);
      expect((await renew(half)).status).toBe(401);
    },
  );

  it("cannot be used or ended by a page of another origin or another port", async () => {
    await using app = await openApp();
    await using site = startForeignSite();
    const context = await newContext();
    const own = await visit(context, app.url);
    const { body } = await sendFromPage(own, `${app.url}/api/auth/login`, LOGIN);
    const half = { "x-svc-session": String(body.session) };
    // Another port of the same host is the same site: its requests carry our cookie.
    const sent: string[] = [];
    context.on("request", (request) => sent.push(`${request.method()} ${new URL(request.url()).origin}`));
    for (const origin of [site.url, site.url.replace("127.0.0.1", "localhost")]) {
      const evil = await context.newPage();
      await evil.goto(origin);
      for (const route of ["refresh", "logout", "login"]) {
        const got = await sendFromPage(
          evil,
          `${app.url}/api/auth/${route}`,
          route === "login" ? LOGIN : {},
          half,
        );
        expect([origin, route, got.status]).toEqual([origin, route, 0]);
        // A form can send requests without a preflight, but no JSON, so the server refuses them.
        const blind = await evil.evaluate(
          ([to]) =>
            fetch(to, { method: "POST", mode: "no-cors", credentials: "include", body: "{}" }).then(
              (response) => response.type,
              () => "refused",
            ),
          [`${app.url}/api/auth/${route}`] as const,
        );
        expect(["opaque", "refused"]).toContain(blind);
      }
      await evil.close();
    }
    expect(sent.some((one) => one === `POST ${app.url}`)).toBe(true);
    expect((await sendFromPage(own, `${app.url}/api/auth/refresh`, {}, half)).status).toBe(200);
    const logins = await app.db.first<{ rows: number }>("select count(*) as rows from refresh_token");
    expect(logins?.rows).toBe(1);
  });

  it("the server refuses another origin, another port and none, with an explanation", async () => {
    await using app = await openApp();
    const port = new URL(app.url).port;
    const origins = [
      `http://127.0.0.1:${Number(port) + 1}`,
      "http://evil.example",
      "null",
      "",
      `http://evil.example:${port}`,
    ];
    for (const origin of origins) {
      const headers = {
        "content-type": "application/json",
        "x-svc-session": "x",
        ...(origin === "" ? {} : { origin }),
      };
      for (const route of ["login", "refresh", "logout"]) {
        const reply = await fetch(`${app.url}/api/auth/${route}`, {
          method: "POST",
          headers,
          body: JSON.stringify(route === "login" ? LOGIN : {}),
        });
        const { detail } = await reply.json();
        expect([origin, route, reply.status, detail]).toEqual([
          origin,
          route,
          403,
          expect.stringContaining("from another origin: it is not this service"),
        ]);
      }
    }
  });

  it(
    "two services on one host have separate logins, because the cookie's name contains the service",
    async () => {
      await using one = await openApp();
      await using two = await openApp();
      const context = await newContext();
      const halves: Record<string, string>[] = [];
      for (const app of [one, two]) {
        const page = await visit(context, app.url);
        const { body } = await sendFromPage(page, `${app.url}/api/auth/login`, LOGIN);
        halves.push({ "x-svc-session": String(body.session) });
      }
      for (const [index, app] of [one, two].entries()) {
        const page = await visit(context, app.url);
        const renew = (half?: Record<string, string>) =>
          sendFromPage(page, `${app.url}/api/auth/refresh`, {}, half);
        expect((await renew(halves[index])).status).toBe(200);
        expect((await renew(halves[1 - index])).status).toBe(401);
      }
    },
  );

  it("the console opens once with a code of svc ctl console, and removes it from the address", async () => {
    await using app = await openApp();
    const { code, url } = await app.call("POST /api/auth/console", {});
    expect(url).toBe(app.url);
    const context = await newContext();
    const page = await context.newPage();
    await page.goto(`${url}/#code=${code}`);
    await page.getByRole("heading", { name: "Welcome" }).waitFor();
    expect(page.url()).not.toContain(code);
    const second = await (await newContext()).newPage();
    await second.goto(`${url}/#code=${code}`);
    await second.getByRole("button", { name: "Sign in" }).waitFor();
  });
});

describeConsole("a link with a code of another user (contract-3 20.9) [USR-3]", ({ visit }) => {
  const getSession = (page: Page) => page.evaluate("localStorage.getItem('svc.session')");

  async function createCode(app: App, headers: Record<string, string> = {}): Promise<string> {
    return (await app.call("POST /api/auth/console", {}, headers)).code;
  }

  const open = async () => {
    const app = await openApp();
    await app.call("POST /api/workers", { name: "Ada" });
    const mallory = await createUser(app, "Mallory", "admin");
    return { app, mallory };
  };

  it("asks with both names, and keeps the session after the answer no", async () => {
    const { app, mallory } = await open();
    await using _app = app;
    await using visitor = await visit(app.url, { at: "/" });
    const { page } = visitor;
    const before = await getSession(page);
    const cookies = await visitor.context.cookies(`${app.url}/api/auth`);
    const code = await createCode(app, mallory.headers);
    await page.goto("about:blank");
    await page.goto(`${app.url}/#code=${code}`);
    const dialog = page.getByRole("dialog");
    await dialog.waitFor();
    expect(await dialog.textContent()).toMatch(/Mallory.*admin/);
    expect(page.url()).not.toContain(code);
    expect(await getSession(page)).toBe(before);
    await dialog.getByRole("button", { name: "Stay signed in as admin" }).click();
    await dialog.waitFor({ state: "detached" });
    expect(await getSession(page)).toBe(before);
    expect(await visitor.context.cookies(`${app.url}/api/auth`)).toEqual(cookies);
    await page.reload();
    await page.getByTitle("Signed in as admin").waitFor();
    // Escape is an answer, too.
    await page.goto("about:blank");
    await page.goto(`${app.url}/#code=${code}`);
    await dialog.waitFor();
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
    expect(await getSession(page)).toBe(before);
  });

  it("replaces the session after the user confirms", async () => {
    const { app, mallory } = await open();
    await using _app = app;
    await using visitor = await visit(app.url, { at: "/" });
    const { page } = visitor;
    await page.goto("about:blank");
    await page.goto(`${app.url}/console/workers#code=${await createCode(app, mallory.headers)}`);
    await page.getByRole("button", { name: "Sign in as another user" }).click();
    await page.getByTitle("Signed in as Mallory").waitFor();
    await page.reload();
    await page.getByTitle("Signed in as Mallory").waitFor();
  });

  it("asks nothing for the same user, without a session, and after the session has ended", async () => {
    const { app, mallory } = await open();
    await using _app = app;
    await using visitor = await visit(app.url, { at: "/" });
    const { page } = visitor;
    const enter = async (name: string, code: string) => {
      await page.goto("about:blank");
      await page.goto(`${app.url}/#code=${code}`);
      await page.getByTitle(`Signed in as ${name}`).waitFor();
      expect(await page.getByRole("dialog").count()).toBe(0);
    };
    await enter("admin", await createCode(app));
    await endSessions(app);
    await enter("Mallory", await createCode(app, mallory.headers));
    await page.evaluate("localStorage.clear()");
    await enter("admin", await createCode(app));
    // A code that is used, or made up, changes nothing.
    await enter("admin", "x".repeat(43));
  });

  it("is refused by the service with 409, and the code stays valid", async () => {
    const { app, mallory } = await open();
    await using _app = app;
    const headers = { origin: app.url, host: new URL(app.url).host, authorization: "" };
    const login = await app.send("POST /api/auth/login", LOGIN, headers);
    const cookie = login.headers.get("set-cookie")?.split(";")[0] ?? "";
    const browser = { ...headers, cookie, "x-svc-session": login.body.session };
    const code = await createCode(app, mallory.headers);
    const refused = await app.send("POST /api/auth/login", { code, browser: true }, browser);
    expect([refused.status, refused.headers.get("set-cookie")]).toEqual([409, null]);
    expect(refused.body.detail).toMatch(/"Mallory".*"admin"/);
    const replaced = await app.send("POST /api/auth/login", { code, browser: true, replace: true }, browser);
    expect(replaced.status).toBe(200);
    const again = await app.send("POST /api/auth/login", { code, browser: true, replace: true }, browser);
    expect(again.status).toBe(401);
  });
});

describeConsole("sign-in with a real OpenID provider [USR-4]", ({ newContext }) => {
  /** Signs in at the provider as this user. */
  async function signInAtProvider(page: Page, app: App, login: string): Promise<void> {
    await page.goto(`${app.url}/api/auth/oidc/start?return=/console/workers`);
    await page.fill("input[name=login]", login);
    await page.fill("input[name=password]", "any");
    await page.click("button[type=submit]");
    await page.click("button[type=submit]");
  }

  it(
    "signs in with PKCE and the role of the provider, and refuses replays, unmapped roles and taken names",
    async () => {
      const port = findFreePort();
      const url = `http://127.0.0.1:${port}`;
      const roles = { ada: ["staff"], eve: ["strangers"], admin: ["staff"] };
      await using provider = await startRealProvider(`${url}/api/auth/oidc/callback`, roles);
      const oidc = { issuer: provider.issuer, ...CLIENT, roles: { staff: "operator" as const } };
      await using app = await openApp({ config: { server: { port }, auth: { oidc } } });
      const context = await newContext();
      const page = await context.newPage();
      const asked: URL[] = [];
      page.on("request", (request) => asked.push(new URL(request.url())));
      await signInAtProvider(page, app, "ada");
      await page.waitForURL(`${url}/**`);
      await expect.poll(() => page.evaluate("localStorage.getItem('svc.session')")).toMatch(/^[\w-]{43}$/);
      expect(new URL(page.url()).pathname).toBe("/console/workers");
      expect(page.url()).not.toContain("code=");
      const [start] = asked.filter(({ pathname }) => pathname === "/auth");
      expect(start?.searchParams.get("code_challenge_method")).toBe("S256");
      for (const name of ["state", "nonce", "code_challenge"]) {
        expect(start?.searchParams.get(name)).toBeTruthy();
      }
      expect(await app.call("GET /api/users/ada")).toMatchObject({ role: "operator", origin: "oidc" });
      // Repeats the callback in the same browser and in another one.
      const callback = asked.find(({ pathname }) => pathname.endsWith("/callback"))?.href ?? "";
      for (const other of [context, await newContext()]) {
        const again = await (await other.newPage()).goto(callback);
        expect(again?.status()).toBe(403);
      }
      // An unmapped role, and a name that is taken.
      for (const [login, status] of [["eve", 403], ["admin", 409]] as const) {
        const stranger = await (await newContext()).newPage();
        const refusal = stranger.waitForResponse((response) => response.url().includes("/oidc/callback"));
        await signInAtProvider(stranger, app, login);
        expect([login, (await refusal).status()]).toEqual([login, status]);
      }
      expect(await app.call("GET /api/users")).toHaveLength(2);
    },
  );
});
