import { createRequire } from "node:module";
import type { Page } from "playwright-core";

const AXE = Deno.readTextFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"));
const RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"];

/** Returns the violations that axe finds on a page. */
export async function findViolations(page: Page): Promise<unknown[]> {
  await page.evaluate(AXE);
  const found = await page.evaluate(
    `axe.run(document, { runOnly: ${JSON.stringify(RULES)} }).then((result) => result.violations.map((one) =>
      [one.id, one.nodes.slice(0, 3).map((node) => node.html.slice(0, 160) + node.failureSummary)]))`,
  );
  return found as unknown[];
}
