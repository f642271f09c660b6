import { dirname, join, relative } from "node:path";
import { describe, expect, it } from "vitest";
import { listSourceFiles, readText, ROOT } from "../harness/house/tree.ts";

const FILES = listSourceFiles("console");
const packages = (JSON.parse(readText("console/deno.json")) as { imports: Record<string, string> }).imports;

/** The allowed imports inside the console: pages import parts and live, parts import live. */
const MAY: Record<string, RegExp> = {
  live: /^console\/live\//,
  parts: /^console\/(parts|live)\//,
  pages: /^console\/(pages|parts|live)\//,
};

// The command line also imports these modules; they are small and need no server.
const SHARED = /^src\/(base\/backoff|domain\/call\/vocabulary)\.ts$/;

/** Packages that only one file imports, so that an update changes one file. */
const PLACES: Record<string, RegExp> = {
  "openapi-fetch": /^console\/live\/api\.ts$/,
  "eventsource-parser": /^console\/live\//,
  "anser": /^console\/parts\/ansi_line\.tsx$/,
  "uplot": /^console\/parts\/chart\.tsx$/,
  "marked": /^console\/parts\/markdown\.tsx$/,
};

interface Imported {
  from: string;
  to: string;
  typeOnly: boolean;
}

function imports(): Imported[] {
  return FILES.flatMap((from) =>
    [
      ...readText(from).matchAll(
        /(?:^(?:import|export) (type )?[^"';]*?from |\bimport\()"([^"]+)"|^import "([^"]+)"/gm,
      ),
    ].map(([, type, named = "", bare = named]) => ({
      from,
      to: bare.startsWith(".") ? relative(ROOT, join(ROOT, dirname(from), bare)) : bare,
      typeOnly: type !== undefined,
    }))
  );
}

/** Finds the lines that match `pattern`, as `file:line`, except in files that match `but`. */
function findLines(pattern: RegExp, but = /^$/): string[] {
  return FILES.filter((file) => !but.test(file)).flatMap((file) =>
    readText(file).split("\n").flatMap((line, index) => pattern.test(line) ? [`${file}:${index + 1}`] : [])
  );
}

describe("the console", () => {
  it("imports no code of the server", () => {
    const wrong = imports().filter(({ from, to, typeOnly }) => {
      if (to === "#schema") return !typeOnly;
      if (SHARED.test(to)) return false;
      if (to.startsWith("console/")) {
        const room = from.split("/").length > 2 ? from.split("/")[1] ?? "" : "";
        return MAY[room]?.test(to) === false;
      }
      const name = /^(@[^/]+\/)?[^/]+/.exec(to)?.[0] ?? "";
      if (!(name in packages)) return true;
      return PLACES[name]?.test(from) === false;
    });
    expect(wrong).toEqual([]);
    expect(imports().length).toBeGreaterThan(100);
  });

  it("pins its packages, and the manual lists them", () => {
    const pinned = Object.entries(packages).filter(([name]) => name !== "#schema");
    for (const [name, target] of pinned) {
      expect(target).toMatch(new RegExp(`^npm:${name}@\\d+\\.\\d+\\.\\d+$`));
    }
    const listed = [
      ...readText("docs/reference/packages.md").matchAll(/^\| console: `([^`]+)` \| \S.*\|$/gm),
    ];
    expect(listed.map(([, name]) => name)).toEqual(pinned.map(([name]) => name));
    const used = new Set(imports().map(({ to }) => /^(@[^/]+\/)?[^/]+/.exec(to)?.[0]));
    expect(pinned.filter(([name]) => !used.has(name))).toEqual([]);
  });

  it("never turns text into markup or code", () => {
    expect(findLines(/innerHTML|outerHTML|insertAdjacentHTML|document\.write|srcdoc|DOMParser/i)).toEqual([]);
    expect(findLines(/\beval\(|new Function\(|\.setAttribute\(/)).toEqual([]);
  });

  it("sends requests only to its own server, through one session", () => {
    expect(findLines(/["'`](https?|wss?):\/\//)).toEqual([]);
    expect(findLines(/(?<!\w)fetch\(/, /^console\/(live\/session|service_worker)\.ts$/)).toEqual([]);
    expect(
      findLines(/XMLHttpRequest|WebSocket|EventSource\(|sendBeacon/, /^console\/pages\/chat\/upload\.ts$/),
    )
      .toEqual([]);
    expect(findLines(/localStorage/, /^console\/live\/(session|notifications|columns|devices)\.ts$/)).toEqual(
      [],
    );
  });

  // The API describes every platform, so a new one needs no change here. Webhooks have separate pages.
  it("names no platform except its own", () => {
    const folders = [...Deno.readDirSync(join(ROOT, "src/platform"))].filter(({ isDirectory }) =>
      isDirectory
    );
    const others = folders.map(({ name }) => name).filter((kind) => !["local", "webhook"].includes(kind));
    expect(others.length).toBeGreaterThan(1);
    expect(findLines(new RegExp(others.join("|"), "i"))).toEqual([]);
  });

  // Scrolling creates hundreds of rows per frame, and a formatter costs more than a row.
  it("creates formatters of times once", () => {
    expect(findLines(/toLocale(Date|Time)String|toLocaleString\((?!"en"\))/)).toEqual([]);
    expect(findLines(/new Intl\./, /^console\/parts\/format\.ts$/)).toEqual([]);
  });

  it("uses colors only from its tokens", () => {
    const sheets = ["base", "layout", "parts", "pages", "work"].map((name) => `console/style/${name}.css`);
    const colored = sheets.flatMap((file) =>
      readText(file).split("\n").filter((line) => /#[0-9a-f]{3,8}\b/i.test(line)).map((line) =>
        `${file}: ${line}`
      )
    );
    expect(colored).toEqual([]);
  });

  it("reaches every file from its entries", () => {
    const edges = imports();
    const found = new Set(["console/main.tsx", "console/service_worker.ts"]);
    for (const file of found) {
      for (const { from, to } of edges) if (from === file && to.startsWith("console/")) found.add(to);
    }
    expect(FILES.filter((file) => !found.has(file))).toEqual([]);
  });
});
