import { dirname, join, relative } from "node:path";
import { describe, expect, it } from "vitest";
import { ROOT, sourceFiles, textOf } from "../harness/tree.ts";

const FILES = sourceFiles("console");
const packages = (JSON.parse(textOf("console/deno.json")) as { imports: Record<string, string> }).imports;

/** What may be imported from where inside of the console: pages on parts and live, parts on live. */
const MAY: Record<string, RegExp> = {
  live: /^console\/live\//,
  parts: /^console\/(parts|live)\//,
  pages: /^console\/(pages|parts|live)\/|^console\/pages\.tsx$/,
};

// What the command line may have of the server without its weight, the console may have, too (architecture, Folders).
const SHARED = /^src\/(base\/backoff|domain\/vocabulary)\.ts$/;

/** Packages that one file uses for all: a change of the package is a change there. */
const PLACES: Record<string, RegExp> = {
  "openapi-fetch": /^console\/live\/api\.ts$/,
  "eventsource-parser": /^console\/live\//,
  "anser": /^console\/parts\/ansi\.tsx$/,
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
      ...textOf(from).matchAll(
        /(?:^(?:import|export) (type )?[^"';]*?from |\bimport\()"([^"]+)"|^import "([^"]+)"/gm,
      ),
    ].map(([, type, named = "", bare = named]) => ({
      from,
      to: bare.startsWith(".") ? relative(ROOT, join(ROOT, dirname(from), bare)) : bare,
      typeOnly: type !== undefined,
    }))
  );
}

/** Every place where `pattern` stands, as `file:line`, but for files that `but` names. */
function places(pattern: RegExp, but = /^$/): string[] {
  return FILES.filter((file) => !but.test(file)).flatMap((file) =>
    textOf(file).split("\n").flatMap((line, index) => pattern.test(line) ? [`${file}:${index + 1}`] : [])
  );
}

describe("the console (architecture, Style; contract 17)", () => {
  it("imports its own files, its packages and types: nothing of the server", () => {
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

  it("pins its packages, and the manual lists each", () => {
    const pinned = Object.entries(packages).filter(([name]) => name !== "#schema");
    for (const [name, target] of pinned) {
      expect(target).toMatch(new RegExp(`^npm:${name}@\\d+\\.\\d+\\.\\d+$`));
    }
    const listed = [...textOf("docs/reference/packages.md").matchAll(/^\| console: `([^`]+)` \| \S.*\|$/gm)];
    expect(listed.map(([, name]) => name)).toEqual(pinned.map(([name]) => name));
    const used = new Set(imports().map(({ to }) => /^(@[^/]+\/)?[^/]+/.exec(to)?.[0]));
    expect(pinned.filter(([name]) => !used.has(name))).toEqual([]);
  });

  it("makes no markup of text, and runs none (facts, console 2.1)", () => {
    expect(places(/innerHTML|outerHTML|insertAdjacentHTML|document\.write|srcdoc|DOMParser/i)).toEqual([]);
    expect(places(/\beval\(|new Function\(|\.setAttribute\(/)).toEqual([]);
  });

  it("asks its own server only, through one session", () => {
    expect(places(/["'`](https?|wss?):\/\//)).toEqual([]);
    expect(places(/(?<!\w)fetch\(/, /^console\/live\/session\.ts$/)).toEqual([]);
    expect(places(/XMLHttpRequest|WebSocket|EventSource\(|sendBeacon/, /^console\/pages\/chat\/upload\.ts$/))
      .toEqual([]);
    expect(places(/localStorage/, /^console\/live\/(session|notify)\.ts$/)).toEqual([]);
  });

  // Every kind of platform is shown as the service tells of it: a new one needs nothing here. Webhooks are pages of their own.
  it("knows no list of platforms but its own", () => {
    const folders = [...Deno.readDirSync(join(ROOT, "src/platform"))].filter(({ isDirectory }) =>
      isDirectory
    );
    const others = folders.map(({ name }) => name).filter((kind) => !["local", "webhook"].includes(kind));
    expect(others.length).toBeGreaterThan(1);
    expect(places(new RegExp(others.join("|"), "i"))).toEqual([]);
  });

  // A list makes hundreds of rows in each frame that is scrolled, and one formatter costs more than a row.
  it("makes a formatter of times once, not for each time (facts, console 3.6)", () => {
    expect(places(/toLocale(Date|Time)String|toLocaleString\((?!"en"\))/)).toEqual([]);
    expect(places(/new Intl\./, /^console\/parts\/format\.ts$/)).toEqual([]);
  });

  it("names no colour outside of its tokens", () => {
    const sheets = ["base", "layout", "parts", "pages"].map((name) => `console/style/${name}.css`);
    const coloured = sheets.flatMap((file) =>
      textOf(file).split("\n").filter((line) => /#[0-9a-f]{3,8}\b/i.test(line)).map((line) =>
        `${file}: ${line}`
      )
    );
    expect(coloured).toEqual([]);
  });

  it("reaches every file from its entry", () => {
    const edges = imports();
    const found = new Set(["console/main.tsx"]);
    for (const file of found) {
      for (const { from, to } of edges) if (from === file && to.startsWith("console/")) found.add(to);
    }
    expect(FILES.filter((file) => !found.has(file))).toEqual([]);
  });
});
