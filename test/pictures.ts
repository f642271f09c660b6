// Takes pictures of every page of the console at three widths, light and dark, from a temporary service with sample data. The
// folder is an argument; `--docs` also updates the four pictures of the README, and `--large` adds 22 workers and 2,000 runs.
// `--only=workers,costs` takes the pictures of these pages only.
import { join } from "node:path";
import { chromium, type Page } from "playwright-core";
import { DESK, findBrowser, PHONE, type View } from "./harness/browser.ts";
import { startServer } from "./harness/service/process.ts";
import { ROOT } from "./harness/house/tree.ts";
import { createSampleData } from "./pictures_data.ts";
import { createLargeData } from "./pictures_large.ts";

const PASSWORD = "pictures of a console";
/** The pictures of the README. */
const IN_DOCS: Record<string, string> = {
  "chat-1280-light": "console-chat",
  "execution-1280-dark": "console-execution",
  "budgets-1280-light": "console-budgets",
  "inbox-390-light": "console-phone",
};

const path = await findBrowser();
if (path === null) Deno.exit(1);
const WIDE: View = { width: 1440, height: 900, dark: false };
const docs = Deno.args.includes("--docs");
const only = Deno.args.find((one) => one.startsWith("--only="))?.slice(7).split(",");
const folder = Deno.args.find((one) => !one.startsWith("--")) ??
  await Deno.makeTempDir({ prefix: "svc-pictures-" });
await Deno.mkdir(folder, { recursive: true });

const home = await Deno.makeTempDir({ prefix: "svc-pictures-data-" });
const script = (text: string) => ({
  kind: "command",
  command: "sh",
  args: ["-c", `cat >/dev/null; ${text}`],
});
const config = {
  platforms: {
    shop: { kind: "webhook", worker: "Ada", secret: `whsec_${btoa("pictures of a console, and no secret")}` },
  },
  bee: { quiet_window: "0ms" },
  engines: {
    writer: { ...script(`printf '%s' "$SAID"`), env: { SAID: buildReply() } },
    builder: script(
      "for i in $(seq 40); do printf '\\033[32mok\\033[0m test/store/list_%s.test.ts\\n' $i >&2; done; " +
        "printf '\\033[31mFAIL\\033[0m test/store/cursor.test.ts: expected 50, got 49\\n' >&2; exit 1",
    ),
  },
};
await Deno.writeTextFile(join(home, "config.yaml"), JSON.stringify(config));
const server = await startServer({ dataDir: home, env: { SVC_AUTH_PASSWORD: PASSWORD } });
const browser = await chromium.launch({
  executablePath: path,
  args: ["--no-sandbox", "--disable-dev-shm-usage"],
});
try {
  const views = [WIDE, DESK, PHONE].flatMap((view) => [{ ...view, dark: false }, { ...view, dark: true }]);
  // A new service without data.
  for (const view of views) {
    await takePictures(view, {
      welcome: "/",
      "chat-none": "/console/chat",
      "runners-none": "/console/runners",
    });
  }
  const pages = await createSampleData(
    server.url,
    PASSWORD,
    Deno.args.includes("--large") ? (call) => createLargeData(join(home, "svc.db"), call) : undefined,
  );
  for (const view of views) await takePictures(view, pages);
  console.log(`The pictures are in ${folder}`);
} finally {
  await browser.close();
  await server.end("SIGTERM");
  await Deno.remove(home, { recursive: true });
}

async function takePictures(view: View, all: Record<string, string>): Promise<void> {
  const pages = Object.fromEntries(Object.entries(all).filter(([name]) => only?.includes(name) !== false));
  if (Object.keys(pages).length === 0) return;
  const context = await browser.newContext({
    viewport: { width: view.width, height: view.height },
    colorScheme: view.dark ? "dark" : "light",
    reducedMotion: "reduce",
    isMobile: view.width < 720,
    hasTouch: view.width < 720,
    locale: "en-GB",
    timezoneId: "UTC",
  });
  const page = await context.newPage();
  const ending = `${view.width}-${view.dark ? "dark" : "light"}`;
  await page.goto(`${server.url}/console/account`);
  await page.getByRole("button", { name: "Sign in" }).waitFor();
  await save(page, `login-${ending}`);
  await page.getByLabel("Name").fill("admin");
  await page.getByLabel("Password").fill(PASSWORD);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { name: "admin" }).waitFor();
  for (const [name, address] of Object.entries(pages)) {
    await page.goto(server.url + address);
    await page.locator(":is(h1, h2):visible").first().waitFor();
    await page.locator(".loading").first().waitFor({ state: "detached" });
    await save(page, `${name}-${ending}`);
  }
  await context.close();
}

async function save(page: Page, name: string): Promise<void> {
  const target = join(folder, `${name}.png`);
  await page.screenshot({ path: target });
  const documented = IN_DOCS[name];
  if (docs && documented !== undefined) await Deno.copyFile(target, join(ROOT, "docs", `${documented}.png`));
}

function buildReply(): string {
  return "The report is done. What changed since last week:\n\n" +
    "- **Sign-ups** are up by 12 %, most of them from the newsletter.\n" +
    "- Two customers asked for invoices in *French*.\n\n" +
    "| Week | Visits | Sign-ups |\n|---|---|---|\n| 46 | 10,412 | 310 |\n| 47 | 11,020 | 347 |\n\n" +
    "The whole text is in `reports/47.md`.";
}
