import { describe, expect, it } from "vitest";
import { type App, openApp } from "../../harness/service/app.ts";

const FIRST_PAGE_MAX_BYTES = 150_000;

function get(app: App, path: string, headers: Record<string, string> = {}): Promise<Response> {
  return app.server.fetch(new Request(`http://localhost${path}`, { headers }));
}

describe("/ and /console (contract 17)", () => {
  it("return the page with a policy that blocks inline code and other hosts", async () => {
    await using app = await openApp({ inMemory: true });
    for (const path of ["/", "/console", "/console/", "/console/executions/x?line=7"]) {
      const response = await get(app, path);
      expect([path, response.status]).toEqual([path, 200]);
      expect(response.headers.get("content-type")).toBe("text/html; charset=utf-8");
      expect(response.headers.get("cache-control")).toBe("no-cache");
      const policy = response.headers.get("content-security-policy") ?? "";
      expect(policy).toMatch(/^default-src 'none'; script-src 'self'; style-src 'self';/);
      expect(policy).toContain("require-trusted-types-for 'script'; trusted-types svc-worker");
      expect(policy).toContain("frame-ancestors 'none'");
      const page = await response.text();
      expect(page).not.toMatch(/https?:|<style|style=|onload|<script>/);
      expect(page).toContain('<div id="app"><p class="loading" role="status">Loading</p></div>');
    }
  });

  it("return immutable files named after their content, compressed for clients that accept it", async () => {
    await using app = await openApp({ inMemory: true });
    const page = await (await get(app, "/")).text();
    const names = [...page.matchAll(/(?:src|href)="(\/console\/assets\/[^"]+)"/g)].map(([, name = ""]) =>
      name
    );
    expect(names.length).toBeGreaterThanOrEqual(4);
    for (const name of names) {
      const plain = await get(app, name);
      expect([name, plain.status, plain.headers.get("content-encoding")]).toEqual([name, 200, null]);
      expect(plain.headers.get("cache-control")).toBe("public, max-age=31536000, immutable");
      expect(plain.headers.get("x-content-type-options")).toBe("nosniff");
      const packed = await get(app, name, { "accept-encoding": "gzip, br" });
      expect(packed.headers.get("content-encoding")).toBe("gzip");
      expect(packed.headers.get("vary")).toContain("accept-encoding");
      const unpacked = packed.body?.pipeThrough(new DecompressionStream("gzip"));
      expect(await new Response(unpacked).bytes()).toEqual(await plain.bytes());
    }
    const manifest = await (await get(app, "/console/manifest.webmanifest")).json();
    for (const icon of manifest.icons) expect((await get(app, icon.src)).status).toBe(200);
  });

  it("return 404 for a missing asset, so that an old tab notices its version, and 405 for other methods", async () => {
    await using app = await openApp({ inMemory: true });
    const old = await get(app, "/console/assets/chat-00000000.js");
    expect([old.status, old.headers.get("content-type")]).toEqual([404, "application/problem+json"]);
    const post = await app.server.fetch(new Request("http://localhost/", { method: "POST" }));
    expect([post.status, post.headers.get("allow")]).toEqual([405, "GET"]);
    expect((await get(app, "/no-such-page")).status).toBe(404);
  });

  it(`send at most ${FIRST_PAGE_MAX_BYTES} bytes of script for the first page`, async () => {
    await using app = await openApp({ inMemory: true });
    const page = await (await get(app, "/")).text();
    const entry = [...page.matchAll(/\/console\/assets\/([^"]+\.js)"/g)].map(([, name = ""]) => name);
    const sizes = new Map<string, number>();
    /** Adds the static imports of these files. Returns their dynamic imports. */
    const load = async (names: string[], loaded: Set<string>): Promise<Set<string>> => {
      const later = new Set<string>();
      for (const name of names) {
        if (loaded.has(name)) continue;
        loaded.add(name);
        const path = `/console/assets/${name}`;
        sizes.set(name, (await (await get(app, path, { "accept-encoding": "gzip" })).bytes()).length);
        const script = await (await get(app, path)).text();
        const found = [...script.matchAll(/(import\()?\s*["'`]\.\/([\w-]+\.js)["'`]/g)];
        for (const [, isLater, other = ""] of found) if (isLater !== undefined) later.add(other);
        const now = found.filter(([, isLater]) => isLater === undefined).map(([, , other = ""]) => other);
        for (const other of await load(now, loaded)) later.add(other);
      }
      return later;
    };
    const first = new Set<string>();
    const pages = await load(entry, first);
    expect(pages.size).toBeGreaterThan(10);
    // Any page may be the first, including its later imports.
    for (const one of pages) {
      const seen = new Set(first);
      for (let wanted = [one]; wanted.length > 0;) {
        wanted = [...await load(wanted, seen)].filter((name) => !seen.has(name) && !pages.has(name));
      }
      const total = [...seen].reduce((sum, name) => sum + (sizes.get(name) ?? 0), 0);
      expect(total, one).toBeLessThan(FIRST_PAGE_MAX_BYTES);
    }
  });

  it("are 404 with server.console: false", async () => {
    await using app = await openApp({ inMemory: true, config: { server: { console: false } } });
    for (const path of ["/", "/console", "/console/manifest.webmanifest"]) {
      expect([path, (await get(app, path)).status]).toEqual([path, 404]);
    }
    expect((await get(app, "/livez")).status).toBe(200);
  });
});
