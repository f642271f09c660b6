import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { openApp } from "../harness/app.ts";
import { findBrowser, launch, PHONE, Visitor } from "../harness/browser.ts";
import { fakeEngines } from "../harness/agents.ts";
import { eventually } from "../harness/wait.ts";
import { FakeTelegram } from "../platform/fakes/telegram.ts";

// A browser beside other tests on a small machine takes its time.
vi.setConfig({ testTimeout: 180_000, hookTimeout: 180_000 });

const path = await findBrowser();
const MALLORY = { from: { id: 4711, is_bot: false, first_name: "<b>Mallory</b>" } };

describe.skipIf(path === null)("platforms in the console (contract 10, contract 17)", () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await launch(path ?? "");
  });
  afterAll(() => browser.close());

  it("a stranger is let in by the code that they got, after it was shown whose it is, and shut out again", async () => {
    await using fake = new FakeTelegram();
    const phone = { kind: "telegram", token: fake.token, base_url: fake.url, worker: "Ada" };
    await using app = await openApp({
      config: { engines: fakeEngines(), platforms: { phone: phone as never } },
    });
    await app.call("POST /api/workers", { name: "Ada" });
    const say = (text: string) => fake.say(text, { chat: 4711, from: 4711, more: MALLORY });
    const answers = () => fake.sent.map(({ text }) => text as string);
    say("say let me in");
    await eventually("a code", () => answers().length === 1);
    const [code = ""] = /[A-Z0-9]{4}-[A-Z0-9]{4}/.exec(answers()[0] ?? "") ?? [];
    await using visitor = await Visitor.open(browser, app.url, PHONE);
    const { page } = visitor;
    await visitor.goto("/console/platforms");
    await visitor.signIn();
    await page.getByRole("heading", { name: "phone" }).waitFor();
    await page.getByRole("button", { name: "Let somebody in" }).click();
    await page.getByLabel("Code").fill("ZZZZ-9999");
    await page.getByRole("button", { name: "Whose is it?" }).click();
    await page.getByRole("alert").waitFor();
    await page.getByLabel("Code").fill(code.toLowerCase());
    await page.getByRole("button", { name: "Whose is it?" }).click();
    await page.getByText("<b>Mallory</b>").waitFor();
    await page.getByText("4711").waitFor();
    await page.getByRole("button", { name: "Let them in" }).click();
    await page.getByText("1 person let in").waitFor();
    expect(await app.call("GET /api/platforms/phone/senders")).toMatchObject([{ id: "4711" }]);
    say("say **hello**");
    await eventually("a reply", () => answers().includes("<b>hello</b>"));
    await visitor.goto("/console/chat");
    await page.getByRole("link", { name: /hello/ }).click();
    await page.getByRole("article", { name: "Reply" }).getByText("hello").waitFor();
    await visitor.goto("/console/platforms");
    await page.getByRole("button", { name: /^Shut out/ }).click();
    await page.getByRole("button", { name: "Shut them out" }).click();
    await page.getByText("1 person let in").waitFor({ state: "detached" });
    expect(await app.call("GET /api/platforms/phone/senders")).toEqual([]);
    say("say still here");
    await eventually("another code", () => answers().at(-1)?.includes("svc ctl platform pair") === true);
    expect(fake.faults).toEqual([]);
    expect(await page.evaluate("document.documentElement.scrollWidth > innerWidth")).toBe(false);
    expect(visitor.complaints).toEqual([]);
  });
});
