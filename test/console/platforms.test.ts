import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { digest } from "../../src/base/digest.ts";
import { openApp } from "../harness/app.ts";
import { findBrowser, launch, PHONE, Visitor } from "../harness/browser.ts";

// A browser beside other tests on a small machine takes its time.
vi.setConfig({ testTimeout: 180_000, hookTimeout: 180_000 });

const path = await findBrowser();
const SECRET = `whsec_${btoa("a secret of twenty-four bytes and more")}`;
const CODE = "K7PX-2MRD";

describe.skipIf(path === null)("platforms in the console (contract 10, contract 17)", () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await launch(path ?? "");
  });
  afterAll(() => browser.close());

  it("a stranger is let in by the code that they got, after it was shown whose it is, and shut out again", async () => {
    await using app = await openApp({
      config: { platforms: { alerts: { kind: "webhook", worker: "Ada", secret: SECRET } as never } },
    });
    await app.call("POST /api/workers", { name: "Ada" });
    const expires = Date.now() + 3_600_000;
    await app.db.write([{
      sql: `insert into platform_pairing (platform, sender, name, code_hash, created_at, expires_at)
        values ('alerts', '4711', '<b>Mallory</b>', ?, ?, ?)`,
      args: [digest(CODE.replace("-", "")), Date.now(), expires],
    }]);
    await using visitor = await Visitor.open(browser, app.url, PHONE);
    const { page } = visitor;
    await visitor.goto("/console/platforms");
    await visitor.signIn();
    await page.getByRole("heading", { name: "alerts" }).waitFor();
    await page.getByRole("button", { name: "Let somebody in" }).click();
    await page.getByLabel("Code").fill("ZZZZ-9999");
    await page.getByRole("button", { name: "Whose is it?" }).click();
    await page.getByRole("alert").waitFor();
    await page.getByLabel("Code").fill(CODE.toLowerCase());
    await page.getByRole("button", { name: "Whose is it?" }).click();
    await page.getByText("<b>Mallory</b>").waitFor();
    await page.getByText("4711").waitFor();
    await page.getByRole("button", { name: "Let them in" }).click();
    await page.getByText("1 person let in").waitFor();
    expect(await app.call("GET /api/platforms/alerts/senders")).toMatchObject([{ id: "4711" }]);
    await page.getByRole("button", { name: /^Shut out/ }).click();
    await page.getByRole("button", { name: "Shut them out" }).click();
    await page.getByText("1 person let in").waitFor({ state: "detached" });
    expect(await app.call("GET /api/platforms/alerts/senders")).toEqual([]);
    expect(await page.evaluate("document.documentElement.scrollWidth > innerWidth")).toBe(false);
    expect(visitor.complaints).toEqual([]);
  });
});
