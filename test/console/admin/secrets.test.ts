import { expect, it } from "vitest";
import type { Page } from "playwright-core";
import { findViolations } from "../../harness/axe.ts";
import { describeConsole, PHONE } from "../../harness/browser.ts";
import { PASSWORD } from "../../harness/service/app.ts";

const VALUE = "a value that no page shows";

/** Checks that the page has no violation and is no wider than the screen. */
async function checkPage(page: Page, picture = ""): Promise<void> {
  if (picture !== "" && Deno.env.get("SHOTS")) {
    await page.screenshot({ path: `/tmp/console38/${picture}.png` });
  }
  expect(await findViolations(page)).toEqual([]);
  expect(await page.evaluate("document.documentElement.scrollWidth > innerWidth")).toBe(false);
}

describeConsole("secrets, boxes and gateways in the console", ({ open, visit }) => {
  it("sets, grants, revokes and deletes a secret, and never shows its value", async () => {
    await using one = await open("/console/system/secrets", { view: PHONE });
    const { app, ada, page } = one;
    const read = () => app.call("GET /api/secrets/github-token");
    await page.getByText("No secrets yet.").waitFor();
    await page.getByRole("button", { name: "New secret" }).click();
    await page.getByLabel("Name").fill("GitHub");
    await page.getByLabel("Value").fill(VALUE);
    expect(await page.getByLabel("Value").getAttribute("type")).toBe("password");
    await page.getByRole("button", { name: "Create secret" }).click();
    await page.getByText(/^Name must be at most 63 lower-case letters/).waitFor();
    await page.getByLabel("Name").fill("github-token");
    await page.getByLabel("Ada").check();
    await checkPage(page);
    await page.getByRole("button", { name: "Create secret" }).click();
    const row = page.getByRole("button", { name: /^active github-token Ada never used/ });
    await row.waitFor();
    expect(await read()).toMatchObject({ workers: [ada.id], lost: false });
    expect(await page.content()).not.toContain(VALUE);

    // The request would replace the value of the first secret.
    await page.getByRole("button", { name: "New secret" }).click();
    await page.getByLabel("Name").fill("github-token");
    await page.getByLabel("Value").fill("another value");
    await page.getByRole("button", { name: "Create secret" }).click();
    await page.getByText("Name is taken").waitFor();
    await page.getByRole("button", { name: "Cancel" }).click();

    await app.call(`PUT /api/workers/${ada.id}`, { env: { GITHUB_TOKEN: "secret:github-token" } });
    await app.db.write([{ sql: "update secret set key_id = 'of another key'", args: [] }]);
    await page.reload();
    await page.getByRole("button", { name: /^lost github-token encrypted with another key/ }).click();
    await checkPage(page);
    expect(await page.getByLabel("New value").inputValue()).toBe("");
    await page.getByLabel("New value").fill(VALUE);
    await page.getByLabel("Ada").uncheck();
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByRole("button", { name: /^active github-token no workers · used by Ada/ }).waitFor();
    expect(await read()).toMatchObject({ workers: [], lost: false });
    await checkPage(page);

    await page.getByRole("button", { name: /github-token/ }).click();
    await page.getByRole("button", { name: "Delete", exact: true }).click();
    await page.getByText("The value is lost. It is needed by Ada.").waitFor();
    await page.getByRole("button", { name: "Delete secret" }).click();
    await page.getByText("No secrets yet.").waitFor();
  });

  it("gives a worker a box, variables and a gateway, and shows what is in effect", async () => {
    const key = { kind: "anthropic", secret: "claude-key" };
    await using one = await open("/", {
      config: {
        gateways: { anthropic: key, models: key } as never,
        isolation: { default: "box", box: { read: ["/usr/share"] } },
      },
    });
    const { app, ada, page, visitor } = one;
    await app.call("PUT /api/secrets/github-token", { value: VALUE, workers: [ada.id] });
    const env = { OLD: "1", LINES: "one\ntwo" };
    const limits = { isolation: { box: { memory: "2G" } } };
    await app.call(`PUT /api/workers/${ada.id}`, { env, ...limits });
    await visitor.goto(`/console/workers/${ada.id}/edit`);
    const save = page.getByRole("button", { name: "Save" });
    await page.getByLabel("Isolation").getByText("Default (box)").waitFor({ state: "attached" });
    await page.getByLabel("Network of the box").selectOption("Named hosts");
    await page.getByLabel("Hosts").fill("api.example.org *.example.net");
    await page.getByLabel("Readable paths").fill("/etc");
    await page.getByLabel("Variables").fill("LEVEL= a=b\nGITHUB_TOKEN=secret:github-token");
    await page.getByLabel("models").check();
    await save.click();
    await page.getByText(/^Readable paths \/etc is not in isolation.box.read/).waitFor();
    expect(await page.locator(".wrong").count()).toBe(1);
    await page.setViewportSize(PHONE);
    await page.getByLabel("Network of the box").scrollIntoViewIfNeeded();
    await checkPage(page);
    await page.getByLabel("Readable paths").fill("/usr/share/doc");
    await save.click();
    await page.getByText("api.example.org, *.example.net").waitFor();
    await page.getByText("GITHUB_TOKEN=secret:github-token").waitFor();
    await page.getByText("2G memory").waitFor();
    await checkPage(page);
    const read = () => app.call(`GET /api/workers/${ada.id}`);
    const box = { memory: "2G", network: ["api.example.org", "*.example.net"], read: ["/usr/share/doc"] };
    expect(await read()).toMatchObject({
      isolation: { box },
      gateways: ["models"],
      env: { LEVEL: " a=b", GITHUB_TOKEN: "secret:github-token", LINES: "one\ntwo" },
    });
    expect((await read()).env.OLD).toBeUndefined();

    // A form without a change of these fields changes nothing.
    await page.getByRole("link", { name: "Edit" }).click();
    await page.getByLabel("Description").fill("Writes");
    await save.click();
    await page.getByText("Writes").waitFor();
    const json = { accept: "application/json" };
    const changes = await app.call("GET /api/events?kind=worker.updated", undefined, json);
    expect(changes.at(-1).data.fields).toEqual(["description"]);

    await page.getByRole("link", { name: "Edit" }).click();
    await page.getByLabel("Isolation").selectOption("Default (box)");
    await page.getByLabel("models").uncheck();
    await save.click();
    await page.getByText("box (default)").waitFor();
    expect(await read()).toMatchObject({ isolation: null, isolation_effective: "box", gateways: [] });

    await app.call("PUT /api/secrets/github-token", { workers: [] });
    await visitor.goto("/console/system/doctor");
    await page.getByText(/^anthropic: .*claude-key.*; models: .*claude-key/).waitFor();
    await page.getByText(/Ada.*github-token|github-token.*Ada/).first().waitFor();

    await app.call("POST /api/users", { name: "grace", role: "viewer", password: PASSWORD });
    await using other = await visit(app.url, {
      ...{ at: `/console/workers/${ada.id}`, view: PHONE },
      ...{ name: "grace", password: PASSWORD },
    });
    await other.page.getByText("box (default)").waitFor();
    expect(await other.page.getByText("GITHUB_TOKEN").count()).toBe(0);
    await checkPage(other.page);
    await other.goto("/console/system");
    await other.page.getByRole("link", { name: "Doctor" }).waitFor();
    expect(await other.page.getByRole("link", { name: "Secrets" }).count()).toBe(0);
  });
});
