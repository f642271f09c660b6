import { expect, it } from "vitest";
import { describeConsole, PHONE } from "../harness/browser.ts";

describeConsole("lists on a phone", ({ open }) => {
  it("a webhook's deliveries use the width of the screen, and names in the usage stay whole", async () => {
    await using one = await open("/", { view: PHONE });
    const { app, page, visitor } = one;
    const { id } = await app.call("POST /api/webhooks", {
      name: "ci",
      url: "https://ci.example.invalid/hooks",
      events: ["worker.*"],
    });
    await app.call(`POST /api/webhooks/${id}/test`, {});
    await visitor.goto(`/console/system/webhooks/${id}`);
    const texts = page.getByRole("listitem").filter({ hasText: "webhook.tested" }).locator(".row-main");
    await texts.first().waitFor();
    expect((await texts.first().boundingBox())?.width).toBeGreaterThan(250);

    const worker = await app.call("POST /api/workers", { name: "Margaret" });
    const chat = await app.call("POST /api/local/sessions", { worker_id: worker.id });
    await app.call(`POST /api/local/sessions/${chat.id}/messages`, { content: "hello" });
    await app.settle();
    await visitor.goto("/console/system/usage");
    const name = page.getByRole("cell", { name: "Margaret" });
    await name.waitFor();
    // The name fits on one line.
    expect((await name.getByRole("link").boundingBox())?.height).toBeLessThan(30);
  });
});
