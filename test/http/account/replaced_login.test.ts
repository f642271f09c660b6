import { describe, expect, it } from "vitest";
import { type App, openApp } from "../../harness/service/app.ts";
import { createUser, WORD } from "../../harness/model/people.ts";

interface Browser {
  headers: Record<string, string>;
}

function openBrowser(app: App): Browser {
  const { publicUrl } = app.server.api.auth.getCookieScope();
  return { headers: { authorization: "", origin: publicUrl, host: new URL(publicUrl).host } };
}

/** Logs a browser in and returns the status. The browser keeps both halves of the login. */
async function enter(app: App, browser: Browser, body: Record<string, unknown>): Promise<number> {
  const reply = await app.send("POST /api/auth/login", { browser: true, ...body }, browser.headers);
  if (reply.status === 200) {
    browser.headers.cookie = reply.headers.get("set-cookie")?.split(";")[0] ?? "";
    browser.headers["x-svc-session"] = reply.body.session;
  }
  return reply.status;
}

async function createCode(app: App, headers: Record<string, string> = {}): Promise<string> {
  return (await app.call("POST /api/auth/console", {}, headers)).code;
}

describe("a code in a browser that is logged in", () => {
  it("replaces another user's login only when this is confirmed, and stays valid until then", async () => {
    await using app = await openApp({ inMemory: true });
    await createUser(app, "Ada", "viewer");
    const eve = await createUser(app, "Eve", "admin");
    const browser = openBrowser(app);
    expect(await enter(app, browser, { username: "Ada", password: WORD })).toBe(200);
    for (const headers of [eve.headers, {}]) {
      const code = await createCode(app, headers);
      expect(await enter(app, browser, { code })).toBe(409);
      expect(await enter(app, browser, { code, replace: false })).toBe(409);
      expect(await enter(app, openBrowser(app), { code })).toBe(200);
    }
    const code = await createCode(app, eve.headers);
    expect(await enter(app, browser, { code, replace: true })).toBe(200);
    // Now the browser is Eve's.
    expect(await enter(app, browser, { code: await createCode(app, eve.headers) })).toBe(200);
    expect(await enter(app, browser, { code: await createCode(app) })).toBe(409);
  });

  it("replaces a login that has ended, and one half of a login is none", async () => {
    await using app = await openApp({ inMemory: true });
    await createUser(app, "Ada", "viewer");
    const browser = openBrowser(app);
    const names = { username: "Ada", password: WORD };
    expect(await enter(app, browser, names)).toBe(200);
    const half = { headers: { ...browser.headers, "x-svc-session": "" } };
    expect(await enter(app, half, { code: await createCode(app) })).toBe(200);
    await app.call("PUT /api/users/Ada", { disabled: true });
    expect(await enter(app, browser, { code: await createCode(app) })).toBe(200);
    expect(await enter(app, browser, names)).toBe(401);
  });

  it("is refused when it was used or is unknown, also with a login", async () => {
    await using app = await openApp({ inMemory: true });
    await createUser(app, "Ada", "viewer");
    const browser = openBrowser(app);
    expect(await enter(app, browser, { username: "Ada", password: WORD })).toBe(200);
    const code = await createCode(app);
    expect(await enter(app, openBrowser(app), { code })).toBe(200);
    expect(await enter(app, browser, { code })).toBe(401);
    expect(await enter(app, browser, { code: "unknown" })).toBe(401);
  });
});
