import { describe, expect, it } from "vitest";
import { openApp } from "../../harness/service/app.ts";
import { DOCS_PATHS } from "../../../src/http/docs.ts";

const browser = await findBrowser();

async function findBrowser(): Promise<string | null> {
  for (const name of ["chromium", "chromium-browser", "google-chrome"]) {
    const { success } = await new Deno.Command("sh", { args: ["-c", `command -v ${name}`], stdout: "null" })
      .output();
    if (success) return name;
  }
  return null;
}

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

  it.skipIf(browser === null)(
    "shows a linked operation in a real browser without violating its policy",
    async () => {
      await using app = await openApp();
      // The page renders only visible operations.
      const cases = [
        ["task/task.create", "Create a task for a worker, without the coordinator", "Try it out"],
        ["message/message.trace", "/api/messages/{id}/trace", "Try it out"],
      ];
      for (const [link, ...shown] of cases) {
        const profile = await Deno.makeTempDir({ prefix: "svc-test-" });
        const { stdout, stderr } = await new Deno.Command(browser ?? "", {
          args: [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            `--user-data-dir=${profile}`,
            "--virtual-time-budget=15000",
            "--enable-logging=stderr",
            "--dump-dom",
            `${app.url}/docs#/${link}`,
          ],
        }).output();
        await Deno.remove(profile, { recursive: true }).catch(() => {});
        const dom = new TextDecoder().decode(stdout);
        const said = new TextDecoder().decode(stderr);
        expect(said).not.toMatch(/Content Security Policy|Refused to|Uncaught/);
        for (const words of shown) expect(dom).toContain(words);
      }
    },
  );
});
