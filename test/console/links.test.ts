import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isSafeLink } from "../../console/parts/safe_link.ts";
import { describeConsole } from "../harness/browser.ts";

const ORIGIN = "http://127.0.0.1:8080";

const LINKS = [
  "https://example.org/a?b=c#d",
  "http://example.org",
  "HTTPS://example.org/",
  "https://例え.jp/道",
  "https://example.org/a%20b",
  "mailto:ada@example.org",
  "/console/tasks",
  "/console/chat/a%2Fb",
  "#part",
  `${ORIGIN}/console/workers`,
  "https://example.org/api/auth/",
  "https://example.org/#barcode=1",
];

const NO_LINKS = [
  "/#code=abc",
  "#code=abc",
  "/?x=1#code=abc",
  "/console/x#code=abc",
  "/#%63ode=abc",
  "/#c%6Fde%3Dabc",
  "/%23code=abc",
  "/#%2563ode=abc",
  "/#x&code=abc",
  `${ORIGIN}/#code=abc`,
  "HTTP://127.0.0.1:8080/#CODE=abc",
  "http://127.1:8080/#code=abc",
  "http://localhost:8080/#code=abc",
  "https://evil.example/?to=http%3A%2F%2F127.0.0.1%3A8080%2F%23code%3Dabc",
  "//evil.example",
  "///evil.example",
  "/\\evil.example",
  "\\\\evil.example",
  "\\/evil.example",
  "/\t/evil.example",
  "/\n/evil.example",
  "/\r\n\\evil.example",
  "\t//evil.example",
  " //evil.example",
  "\u0001//evil.example",
  "/%5Cevil.example",
  "/%2Fevil.example",
  "/%09/evil.example/../..//evil.example",
  "/..//evil.example",
  "/.//evil.example",
  "http:\\\\evil.example",
  "https:/\\evil.example",
  "https:evil.example",
  "https:/evil.example",
  "https:///evil.example",
  "ht\ntps://evil.example",
  "https://",
  "https://admin:word@example.org/",
  "https://127.0.0.1:8080@evil.example/",
  "javascript:alert(1)",
  "JavaScript:alert(1)",
  "java\nscript:alert(1)",
  "\u0000javascript:alert(1)",
  " javascript:alert(1)",
  "javascript&colon;alert(1)",
  "data:text/html,x",
  "vbscript:x",
  "blob:http://127.0.0.1:8080/x",
  "file:///etc/passwd",
  "view-source:https://example.org",
  "tel:123",
  "",
  "?x",
  "evil.example",
  "/api/auth/oidc/start?return=/",
  "/api/auth/oidc/start",
  "/console/../api/auth/oidc/start",
  "/console/%2e%2e/api/auth/oidc/start",
  "/%61pi/auth/oidc/start",
  "/api%2Fauth%2Foidc/start",
  `${ORIGIN}/api/auth/oidc/start`,
];

describe("isSafeLink() (contract-3 20.9)", () => {
  it.each(LINKS)("accepts %j", (href) => expect(isSafeLink(href, ORIGIN)).toBe(true));
  it.each(NO_LINKS)("refuses %j", (href) => expect(isSafeLink(href, ORIGIN)).toBe(false));

  const LENGTH = 100_000;
  it.each([
    [
      "an escape that is escaped again and again",
      `https://example.org/%${"25".repeat(LENGTH / 2)}23code=a`,
      false,
    ],
    ["many number signs", `https://example.org/${"#".repeat(LENGTH)}`, true],
    ["many number signs and a code", `https://example.org/${"#".repeat(LENGTH)}code=a`, false],
    ["many beginnings of a code", `https://example.org/${"#code".repeat(LENGTH / 5)}`, true],
  ])("decides soon about %s", (_, href, isSafe) => {
    const startedAt = performance.now();
    expect(isSafeLink(href, ORIGIN)).toBe(isSafe);
    expect(performance.now() - startedAt).toBeLessThan(1_000);
  });

  it("accepts no text that a browser resolves to a code, to a login, to a script or as a path to another site", () => {
    const piece = fc.constantFrom(
      ..."/ // \\ # ? & : @ . .. %2f %5c %23 %2523 %63 %3d code= code = api auth oidc/start javascript: http: https:"
        .split(" "),
      ...["\t", "\n", "\r", "\u0000", " ", ORIGIN, "evil.example", "127.0.0.1:8080", "localhost:8080", "x"],
    );
    const text = fc.oneof(fc.array(piece, { maxLength: 9 }).map((all) => all.join("")), fc.string());
    let accepted = 0;
    fc.assert(
      fc.property(text, (href) => {
        if (!isSafeLink(href, ORIGIN)) return;
        accepted++;
        const url = new URL(href, ORIGIN);
        expect(["http:", "https:", "mailto:"]).toContain(url.protocol);
        if (/^[\s/#\\]/.test(href)) expect(url.origin).toBe(ORIGIN);
        let hash = url.hash;
        for (let i = 0; i < 5; i++) hash = hash.replace(/%(23|63|3d|25)/gi, (one) => decodeURIComponent(one));
        expect(hash).not.toMatch(/^#code=/i);
        if (url.origin === ORIGIN) expect(url.pathname.startsWith("/api/auth/")).toBe(false);
      }),
      { numRuns: 20_000, seed: 37 },
    );
    expect(accepted).toBeGreaterThan(200);
  });
});

describeConsole("links of an agent's answer in the console (contract-3 20.9)", ({ open }) => {
  it("lead to other sites and pages, and never to a login or a script", async () => {
    await using one = await open("/");
    const { app, ada, page, visitor } = one;
    const chat = await app.call("POST /api/local/sessions", { worker_id: ada.id });
    const own = new URL(app.url);
    const bad = NO_LINKS.map((href) => href.replaceAll("\u0000", "").replaceAll("8080", own.port));
    const lines = [
      "[good one](https://example.org/page) and [good two](/console/tasks)",
      ...bad.flatMap((href, index) => [
        `[bad ${index}](${href})`,
        `[worse ${index}](<${href}>)`,
        `![image ${index}](<${href}>)`,
        `[ref ${index}][r${index}]`,
        "",
        `[r${index}]: <${href}>`,
        "",
      ]),
      `<${app.url}/#code=auto>`,
      "",
      `${app.url}/#code=bare`,
      "",
      '<a href="/#code=html">html</a>',
      "",
      "[entity](/&#35;code=abc) [entity](&sol;&sol;evil.example) [entity](/&bsol;evil.example)",
      "",
      "the end of the answer",
    ];
    await app.call(`POST /api/local/sessions/${chat.id}/messages`, { content: lines.join("\n") });
    await app.settle();
    await visitor.goto(`/console/chat/${chat.id}`);
    await page.getByRole("article", { name: "Reply" }).getByText("the end of the answer").waitFor();
    const links = await page.locator(".markdown a").evaluateAll((all) =>
      all.map((link) => ({ text: link.textContent, href: String(Reflect.get(link, "href")) }))
    );
    // Markdown turns `\\/x` into `/x`, and leaves `&bsol;` in a path: both lead to a missing page of the console.
    const harmless = [`${app.url}/evil.example`, `${app.url}/&bsol;evil.example`];
    const bads = links.filter(({ text }) => /^(bad|worse|image|ref|entity|html) ?\d*$/.test(text ?? ""));
    expect(bads.filter(({ href }) => !harmless.includes(href))).toEqual([]);
    const ownLinks = links.map(({ href }) => href).filter((href) => href.startsWith(app.url));
    expect([...new Set(ownLinks)].filter((href) => !harmless.includes(href))).toEqual([
      `${app.url}/console/tasks`,
    ]);
    expect(links.filter(({ href }) => /#code=|evil\.example\/.*code|^(?!https?:|mailto:)/.test(href)))
      .toEqual([]);
    expect(links.map(({ text }) => text)).toContain("good one");
  });
});
