import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, vi } from "vitest";
import { type App, openApp, PASSWORD, type TestSettings } from "./service/app.ts";
import type { Json } from "./service/client.ts";

export interface View {
  width: number;
  height: number;
  dark: boolean;
}

export const DESK: View = { width: 1280, height: 800, dark: false };
export const PHONE: View = { width: 390, height: 844, dark: false };

/** Returns the path of a Chromium, or null without one. Console tests are skipped without it. */
export async function findBrowser(): Promise<string | null> {
  const named = Deno.env.get("SVC_TEST_CHROMIUM");
  for (
    const name of [...named === undefined ? [] : [named], "chromium", "chromium-browser", "google-chrome"]
  ) {
    const { success, stdout } = await new Deno.Command("sh", { args: ["-c", `command -v ${name}`] }).output();
    if (success) return new TextDecoder().decode(stdout).trim();
  }
  console.warn("left out: there is no Chromium here");
  return null;
}

const CHROMIUM = await findBrowser();

/** Starts a browser. Each test file starts one. */
export function launch(executablePath: string): Promise<Browser> {
  return chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-dev-shm-usage"] });
}

const REPORT_BREACHES = `document.addEventListener("securitypolicyviolation", (event) => {
  console.error("policy: " + event.violatedDirective + " " + event.blockedURI);
});`;

interface VisitOptions {
  /** Opens this path and signs in there. */
  at?: string;
  view?: View;
  name?: string;
  password?: string;
  /** Expected complaints. */
  allowed?: RegExp;
}

/** A service with a worker, and a visitor on a page of it. */
interface OpenConsole extends AsyncDisposable {
  app: App;
  /** The worker Ada. */
  ada: Json;
  visitor: Visitor;
  page: Page;
}

interface ConsoleTools {
  newContext: () => Promise<BrowserContext>;
  /** Opens a visitor, whose disposal fails after complaints. */
  visit: (url: string, options?: VisitOptions) => Promise<Visitor>;
  /** Starts a service with the worker Ada, and signs in on a page of it. */
  open: (at: string, options?: VisitOptions & { config?: TestSettings }) => Promise<OpenConsole>;
}

/** Defines tests of the console that share a browser. They are skipped without a Chromium. */
export function describeConsole(name: string, define: (tools: ConsoleTools) => void): void {
  // A browser is slow on a small machine that runs other tests, too.
  vi.setConfig({ testTimeout: 180_000, hookTimeout: 180_000 });
  describe.skipIf(CHROMIUM === null)(name, () => {
    let browser: Browser;
    beforeAll(async () => {
      browser = await launch(CHROMIUM ?? "");
    });
    afterAll(() => browser.close());
    const visit = async (url: string, { at, view, name, password, allowed }: VisitOptions = {}) => {
      const visitor = await Visitor.open(browser, url, view);
      visitor.allowed = allowed ?? null;
      if (at === undefined) return visitor;
      await visitor.goto(at);
      await visitor.signIn(name, password);
      return visitor;
    };
    const open = async (
      at: string,
      { config = {}, ...options }: Parameters<ConsoleTools["open"]>[1] = {},
    ) => {
      const app = await openApp({ config });
      const ada = await app.call("POST /api/workers", { name: "Ada" });
      const visitor = await visit(app.url, { ...options, at });
      return {
        ...{ app, ada, visitor, page: visitor.page },
        async [Symbol.asyncDispose]() {
          await visitor[Symbol.asyncDispose]();
          await app[Symbol.asyncDispose]();
        },
      };
    };
    define({ visit, open, newContext: () => browser.newContext() });
  });
}

/** A visitor with a separate browser context, and every complaint of its pages. */
export class Visitor {
  /** Policy breaches, script errors, and requests to other hosts. */
  readonly complaints: string[] = [];
  allowed: RegExp | null = null;

  private constructor(readonly context: BrowserContext, readonly page: Page, readonly url: string) {
    this.#listen(page);
    context.on("page", (other) => this.#listen(other));
  }

  static async open(browser: Browser, url: string, view: View = DESK): Promise<Visitor> {
    const context = await browser.newContext({
      viewport: { width: view.width, height: view.height },
      colorScheme: view.dark ? "dark" : "light",
      reducedMotion: "reduce",
      isMobile: view.width < 720,
      hasTouch: view.width < 720,
      permissions: ["clipboard-read", "clipboard-write"],
      locale: "en-GB",
      timezoneId: "UTC",
    });
    await context.addInitScript({ content: REPORT_BREACHES });
    const visitor = new Visitor(context, await context.newPage(), url);
    visitor.page.setDefaultTimeout(30_000);
    return visitor;
  }

  #listen(page: Page): void {
    page.on("pageerror", (error) => this.complaints.push(`error: ${error.message}`));
    page.on("console", (message) => {
      if (message.type() === "error" && !expected(message.text())) this.complaints.push(message.text());
    });
    page.on("request", (request) => {
      const { origin, protocol } = new URL(request.url());
      if (protocol.startsWith("http") && origin !== this.url) this.complaints.push(`request to ${origin}`);
    });
  }

  async goto(path: string): Promise<void> {
    await this.page.goto(this.url + path);
  }

  /** Signs in on the login page. */
  async signIn(name = "admin", password = PASSWORD): Promise<void> {
    await this.page.getByLabel("Name").fill(name);
    await this.page.getByLabel("Password").fill(password);
    await this.page.getByRole("button", { name: "Sign in" }).click();
    await this.page.getByRole("heading", { name: /^Sign in/ }).waitFor({ state: "detached" });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.context.close();
    expect(this.complaints.filter((one) => !this.allowed?.test(one))).toEqual([]);
  }
}

// Chromium logs every refused request; tests check how the page handles it.
function expected(text: string): boolean {
  return /^Failed to load resource: (the server responded with a status of (400|401|404|409)|net::ERR_)/.test(
    text,
  );
}
