import { describe, expect, it } from "vitest";
import { describeConsole } from "../../harness/browser.ts";
import { openApp } from "../../harness/service/app.ts";
import { DOCS_PATHS } from "../../../src/http/docs.ts";

describe("/docs (contract 5)", () => {
  it("is public and complete, loads only from this server, and blocks inline code", async () => {
    await using app = await openApp();
    for (const path of DOCS_PATHS) {
      const response = await app.server.fetch(new Request(`http://localhost${path}`));
      expect([path, response.status]).toEqual([path, 200]);
      expect(response.headers.get("content-security-policy")).toContain(
        "default-src 'none'; script-src 'self';",
      );
      expect(response.headers.get("x-content-type-options")).toBe("nosniff");
      expect((await response.text()).length).toBeGreaterThan(100);
    }
    const page = await (await app.server.fetch(new Request("http://localhost/docs"))).text();
    expect(page).not.toMatch(/https?:|<style|style=|onload|<script>/);
  });
});

describeConsole("/docs in a browser (contract 5)", ({ visit }) => {
  it("shows a linked operation without violating its policy", async () => {
    await using app = await openApp();
    await using visitor = await visit(app.url);
    const { page } = visitor;
    // The page renders only visible operations.
    for (
      const [link, words] of [
        ["task/task.create", "Create a task for a worker, without the coordinator"],
        ["message/message.trace", "/api/messages/{id}/trace"],
      ]
    ) {
      await page.goto("about:blank");
      await visitor.goto(`/docs#/${link}`);
      await page.getByText(words ?? "").first().waitFor();
      await page.getByText("Try it out").first().waitFor();
    }
  });
});
