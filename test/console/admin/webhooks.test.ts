import { expect, it } from "vitest";
import { openApp, PASSWORD } from "../../harness/service/app.ts";
import { describeConsole, PHONE } from "../../harness/browser.ts";
import { waitUntil } from "../../harness/wait.ts";
import { Receiver } from "../../platform/fakes/receiver.ts";

const SECRET = `whsec_${btoa("a secret of twenty-four bytes and more")}`;

describeConsole("webhooks in the console", ({ open, visit }) => {
  it("creates a webhook with a one-time secret, tests, edits, disables and deletes it", async () => {
    await using one = await open("/console/system/webhooks", { view: PHONE });
    const { app, page } = one;
    await page.getByText("No webhooks yet.").waitFor();
    await page.getByRole("button", { name: "New webhook" }).click();
    await page.getByLabel("Name").fill("ci");
    await page.getByLabel("URL").fill("ftp://127.0.0.1/hook");
    await page.getByRole("button", { name: "Create webhook" }).click();
    await page.getByText(/URL must be an address such as/).waitFor();
    // The API refuses loopback addresses.
    await page.getByLabel("URL").fill("http://127.0.0.1:9/hook");
    await page.getByLabel("Events").fill("task.* execution.failed");
    await page.getByRole("button", { name: "Create webhook" }).click();
    const secret = await page.locator(".secret code").textContent() ?? "";
    expect(secret).toMatch(/^whsec_/);
    await page.getByRole("button", { name: "Done" }).click();
    expect(await page.content()).not.toContain(secret);
    await page.getByRole("link", { name: /ci/ }).click();
    await page.getByRole("button", { name: "Test" }).click();
    await page.getByRole("status").getByText(/Delivery failed: /).waitFor();
    await page.getByText("webhook.tested").waitFor();
    await page.getByRole("button", { name: "Edit" }).click();
    await page.getByLabel("Events").fill("worker.*");
    await page.getByLabel("Enabled").uncheck();
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("worker.*").waitFor();
    expect(await app.call("GET /api/webhooks/ci")).toMatchObject({ events: ["worker.*"], enabled: false });
    await page.getByRole("button", { name: "Delete ci" }).click();
    await page.getByRole("button", { name: "Delete webhook" }).click();
    await page.getByText("No webhooks yet.").waitFor();
  });

  it("shows deliveries live and redelivers from any of them; a viewer cannot change them", async () => {
    await using receiver = new Receiver(SECRET);
    const out = {
      name: "out",
      url: receiver.url,
      secret: SECRET,
      events: ["memory.*"],
      allow_private: true,
    };
    await using app = await openApp({ config: { webhooks: [out] } });
    await app.call("POST /api/workers", { name: "Ada" });
    await app.call("POST /api/users", { name: "grace", role: "viewer", password: PASSWORD });
    const { id } = await app.call("GET /api/webhooks/out");
    await using visitor = await visit(app.url, { at: `/console/system/webhooks/${id}` });
    const { page } = visitor;
    await page.getByText("No deliveries yet.").waitFor();
    for (const key of ["a", "b"]) {
      await app.call("PUT /api/memory/entry", { scope: "global", key, value: key });
    }
    await waitUntil("both arrive", () => receiver.got.length === 2);
    await app.call("POST /api/workers", { name: "Bob" });
    const again = page.getByRole("button", { name: /^Redeliver from event/ });
    await again.nth(1).click();
    await page.getByRole("dialog").getByRole("button", { name: "Redeliver" }).click();
    await waitUntil("both arrive again", () => receiver.got.length === 4);
    expect(new Set(receiver.got.map(({ id: one }) => one)).size).toBe(2);
    // Only the file can delete a webhook of the configuration.
    expect(await page.getByRole("button", { name: /^Delete/ }).count()).toBe(0);
    expect(receiver.faults).toEqual([]);

    await using other = await visit(app.url, {
      at: `/console/system/webhooks/${id}`,
      name: "grace",
      password: PASSWORD,
    });
    await other.page.getByRole("heading", { name: "Deliveries" }).waitFor();
    await other.page.getByText("memory.saved").first().waitFor();
    expect(await other.page.getByRole("button", { name: /Test|Edit|Redeliver/ }).count()).toBe(0);
  });
});
