import { expect, it } from "vitest";
import { openApp, PASSWORD } from "../../harness/service/app.ts";
import { describeConsole, PHONE } from "../../harness/browser.ts";

describeConsole("users in the console", ({ open, visit }) => {
  it("creates a user with a one-time password, who signs in; edits and deletes the user", async () => {
    await using one = await open("/console/system/users");
    const { app, page } = one;
    await page.getByRole("button", { name: "New user" }).click();
    await page.getByLabel("Name").fill("grace");
    await page.getByLabel("Role").selectOption("viewer");
    await page.getByRole("button", { name: "Create user" }).click();
    const secret = await page.locator(".secret code").textContent() ?? "";
    await page.getByRole("button", { name: "Done" }).click();
    expect(await page.content()).not.toContain(secret);

    await using other = await visit(app.url, {
      at: "/console/workers",
      view: PHONE,
      name: "grace",
      password: secret,
    });
    await other.page.getByText("Ada").waitFor();
    expect(await other.page.getByRole("link", { name: "New worker" }).count()).toBe(0);

    await page.getByRole("button", { name: /^active grace/ }).click();
    await page.getByLabel("Role").selectOption("operator");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("operator", { exact: true }).waitFor();
    expect(await app.call("GET /api/users/grace")).toMatchObject({ role: "operator" });
    await page.getByRole("button", { name: /^active grace/ }).click();
    await page.getByRole("button", { name: "Delete", exact: true }).click();
    await page.getByText("its tokens and its sessions end immediately").waitFor();
    await page.getByRole("button", { name: "Delete user" }).click();
    await page.getByRole("button", { name: /grace/ }).waitFor({ state: "detached" });
    await other.page.getByRole("heading", { name: "Sign in again" }).waitFor();
  });

  it("creates, uses and revokes a token, and explains a scope that the user lacks", async () => {
    await using app = await openApp();
    await app.call("POST /api/workers", { name: "Ada" });
    await app.call("POST /api/users", { name: "grace", role: "viewer", password: PASSWORD });
    await using visitor = await visit(app.url, { at: "/console/account", name: "grace", allowed: /403/ });
    const { page } = visitor;
    await page.getByRole("button", { name: "New token" }).click();
    await page.getByLabel("Name").fill("ci");
    await page.getByLabel("Scopes").fill("write:tasks");
    await page.getByRole("button", { name: "Create token" }).click();
    await page.getByRole("alert").getByText("you do not hold it yourself").waitFor();
    await page.getByLabel("Scopes").fill("read:workers");
    await page.getByRole("button", { name: "Create token" }).click();
    const secret = await page.locator(".secret code").textContent() ?? "";
    await page.getByRole("button", { name: "Done" }).click();
    const read = () => fetch(`${app.url}/api/workers`, { headers: { authorization: `Bearer ${secret}` } });
    const answer = await read();
    expect([answer.status, await answer.json()]).toMatchObject([200, [{ name: "Ada" }]]);
    await page.getByRole("button", { name: "Revoke ci" }).click();
    await page.getByRole("button", { name: "Revoke token" }).click();
    await page.getByText("No tokens yet.").waitFor();
    const refused = await read();
    await refused.body?.cancel();
    expect(refused.status).toBe(401);
  });

  for (const name of ["admin", "grace"]) {
    it(`changes the user's password, which keeps this session and ends the others: ${name}`, async () => {
      // Neither the configuration nor the environment sets the operator's password.
      await using app = await openApp({ config: { auth: { password_hash: "" } } });
      const before = name === "admin" ? app.server.generatedPassword ?? "" : PASSWORD;
      await app.call("POST /api/workers", { name: "Ada" });
      await app.call("POST /api/users", { name: "grace", role: "viewer", password: PASSWORD });
      await using visitor = await visit(app.url);
      await using elsewhere = await visit(app.url);
      for (const one of [visitor, elsewhere]) {
        await one.goto("/console/workers");
        await one.signIn(name, before);
        await one.page.getByRole("link", { name, exact: true }).click();
      }
      const { page } = visitor;
      await page.getByLabel("Current password").fill("wrong enough");
      await page.getByLabel("New password").fill("another long secret");
      await page.getByRole("button", { name: "Change password" }).click();
      await page.getByText("Current password is wrong").waitFor();
      await page.getByLabel("Current password").fill(before);
      await page.getByRole("button", { name: "Change password" }).click();
      await page.getByText("Password changed").waitFor();
      await page.reload();
      await page.getByRole("heading", { name }).waitFor();
      await elsewhere.goto("/console/workers");
      await elsewhere.page.getByRole("heading", { name: /^Sign in/ }).waitFor();
      await elsewhere.signIn(name, "another long secret");
    });
  }

  it("shows notifications only if they are enabled and the page is hidden", async () => {
    await using app = await openApp();
    await app.call("POST /api/workers", { name: "Ada" });
    await using visitor = await visit(app.url);
    const { page, context } = visitor;
    await context.grantPermissions(["notifications"], { origin: app.url });
    await context.addInitScript({
      content: `window.told = []; window.asked = 0; window.unseen = false;
        window.Notification = class { constructor(title) { window.told.push(title); }
          static permission = "granted"; static requestPermission() { window.asked++; return Promise.resolve("granted"); } };
        Object.defineProperty(document, "hidden", { get: () => window.unseen });`,
    });
    const pause = async (name: string) => {
      const { id } = await app.call("POST /api/workers", { name });
      await app.call(`PUT /api/workers/${id}`, { paused: true });
    };
    const needed = (count: number) => page.getByText(`${count}need attention`).waitFor();
    await visitor.goto("/console/account");
    await visitor.signIn();
    await page.evaluate("window.unseen = true");
    await pause("Bob");
    await needed(1);
    expect(await page.evaluate("[window.asked, window.told]")).toEqual([0, []]);
    await page.getByLabel("Notify me in this browser").check();
    await pause("Eve");
    await needed(2);
    expect(await page.evaluate("[window.asked, window.told]")).toEqual([1, ["Eve"]]);
    await page.evaluate("window.unseen = false");
    await pause("Mallory");
    await needed(3);
    expect(await page.evaluate("window.told")).toEqual(["Eve"]);
  });

  it("saves a backup, and includes the signing key only with the password", async () => {
    await using one = await open("/console/system/backup");
    const { page } = one;
    const make = page.getByRole("button", { name: "Create backup" });
    const saved = async () => {
      const [download] = await Promise.all([page.waitForEvent("download"), make.click()]);
      const bytes = await Deno.readFile(await download.path());
      return { name: download.suggestedFilename(), text: new TextDecoder("latin1").decode(bytes) };
    };
    const plain = await saved();
    expect(plain.name).toMatch(/\.tar$/);
    expect(plain.text).toContain("SHA256SUMS");
    expect(plain.text).not.toMatch(/secret\.key/);
    await page.getByLabel(/Include the signing key/).check();
    await page.getByLabel("Your password").fill("not the password");
    await make.click();
    await page.getByText("Your password is wrong").waitFor();
    await page.getByLabel("Your password").fill(PASSWORD);
    expect((await saved()).text.length).toBeGreaterThan(plain.text.length);
  });
});
