import { expect, it } from "vitest";
import { openApp } from "../../harness/service/app.ts";
import { describeConsole, PHONE } from "../../harness/browser.ts";
import { buildFakeEngines } from "../../harness/fakes/agents.ts";
import { TestClock } from "../../harness/clock.ts";
import { waitUntil } from "../../harness/wait.ts";
import { Receiver } from "../../platform/fakes/receiver.ts";
import { FakeTelegram } from "../../platform/fakes/telegram.ts";

const SECRET = `whsec_${btoa("a secret of twenty-four bytes and more")}`;
const MALLORY = { from: { id: 4711, is_bot: false, first_name: "<b>Mallory</b>" } };

describeConsole("platforms in the console", ({ visit }) => {
  it("pairs a sender by their code after showing who they are, and unpairs them", async () => {
    await using fake = new FakeTelegram();
    const phone = { kind: "telegram", token: fake.token, base_url: fake.url, worker: "Ada" };
    await using app = await openApp({
      config: { engines: buildFakeEngines(), platforms: { phone: phone as never } },
    });
    await app.call("POST /api/workers", { name: "Ada" });
    const say = (text: string) => fake.say(text, { chat: 4711, from: 4711, more: MALLORY });
    const answers = () => fake.sent.map(({ text }) => text as string);
    say("say let me in");
    await waitUntil("a code", () => answers().length === 1);
    const [code = ""] = /[A-Z0-9]{4}-[A-Z0-9]{4}/.exec(answers()[0] ?? "") ?? [];
    await using visitor = await visit(app.url, { at: "/console/platforms", view: PHONE });
    const { page } = visitor;
    await page.getByRole("heading", { name: "phone" }).waitFor();
    await page.getByRole("button", { name: "Pair a sender" }).click();
    await page.getByLabel("Code").fill("ZZZZ-9999");
    await page.getByRole("button", { name: "Look up code" }).click();
    await page.getByRole("alert").waitFor();
    await page.getByLabel("Code").fill(code.toLowerCase());
    await page.getByRole("button", { name: "Look up code" }).click();
    await page.getByText("<b>Mallory</b>").waitFor();
    await page.getByText("4711").waitFor();
    await page.getByRole("button", { name: "Confirm pairing" }).click();
    await page.getByText("1 paired sender").waitFor();
    expect(await app.call("GET /api/platforms/phone/senders")).toMatchObject([{ id: "4711" }]);
    say("say **hello**");
    await waitUntil("a reply", () => answers().includes("<b>hello</b>"));
    await visitor.goto("/console/chat");
    await page.getByRole("link", { name: /hello/ }).click();
    await page.getByRole("article", { name: "Reply" }).getByText("hello").waitFor();
    await visitor.goto("/console/platforms");
    await page.getByRole("button", { name: /^Unpair/ }).click();
    await page.getByRole("button", { name: "Unpair sender" }).click();
    await page.getByText("1 paired sender").waitFor({ state: "detached" });
    expect(await app.call("GET /api/platforms/phone/senders")).toEqual([]);
    say("say still here");
    await waitUntil("another code", () => answers().at(-1)?.includes("svc ctl platform pair") === true);
    expect(fake.faults).toEqual([]);
  });

  it("sends an undelivered reply again from the inbox, once", async () => {
    const clock = new TestClock();
    await using receiver = new Receiver(SECRET, () => clock.now());
    const alerts = {
      kind: "webhook",
      worker: "Ada",
      secret: SECRET,
      reply_url: receiver.url,
      allow_private: true,
    };
    await using app = await openApp({
      clock,
      config: { engines: buildFakeEngines(), platforms: { alerts: alerts as never } },
    });
    await app.call("POST /api/workers", { name: "Ada" });
    receiver.modes.push(422);
    await app.call("POST /hooks/alerts", { text: "say the report is ready", id: "m1" });
    await app.settle();
    await using visitor = await visit(app.url, { at: "/", view: PHONE });
    const { page } = visitor;
    const again = page.getByRole("button", { name: /^Send again: the report is ready/ });
    await again.dblclick();
    await page.getByText("Sending again").waitFor();
    await app.until("message.sent");
    await again.waitFor({ state: "detached" });
    expect(receiver.got.map(({ body }) => body.data.text)).toEqual([
      "the report is ready",
      "the report is ready",
    ]);
  });

  it("shows a platform of an unknown kind like any other", async () => {
    await using app = await openApp();
    await using visitor = await visit(app.url);
    const { page } = visitor;
    const since = Date.now() - 60_000;
    const strange = {
      name: "pigeons",
      kind: "carrier_pigeon",
      state: "asleep",
      since,
      error: "",
      last_event_at: null,
    };
    await page.route(
      /\/api\/platforms$/,
      (route) => route.fulfill({ json: [{ ...strange, waiting: 2, waiting_since: since }] }),
    );
    await page.route(/\/api\/platforms\/pigeons\/senders/, (route) => route.fulfill({ json: [] }));
    await visitor.goto("/console/platforms");
    await visitor.signIn();
    await page.getByRole("heading", { name: "pigeons" }).waitFor();
    await page.getByText("carrier_pigeon").waitFor();
    await page.getByText("2 replies waiting").waitFor();
    await page.getByRole("button", { name: "Test pigeons" }).waitFor();
  });
});
