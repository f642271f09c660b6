import { describe, expect, it } from "vitest";
import { listSourceFiles, readText } from "../harness/house/tree.ts";

const LINES_MAX = 400;
const SOURCES = listSourceFiles("main.ts", "src", "cli", "console");
const ALL = [...SOURCES, ...listSourceFiles("build", "test", "bench")];

/** Finds every match of `pattern` in the files, as `file:line`. */
function findPlaces(files: string[], pattern: RegExp): string[] {
  return files.flatMap((file) =>
    readText(file).split("\n").flatMap((line, index) => pattern.test(line) ? [`${file}:${index + 1}`] : [])
  );
}

describe("files (architecture, Style)", () => {
  // Migrations are read from top to bottom and never edited again.
  it("have at most 400 lines", () => {
    const long = SOURCES.filter((file) => readText(file).split("\n").length - 1 > LINES_MAX);
    expect(long.filter((file) => !file.startsWith("src/store/migrations/"))).toEqual([]);
  });

  it("have snake_case names after a noun, and never utils, helpers, common, misc, manager or handler", () => {
    const wrong = ALL.filter((file) => {
      const name = file.split("/").at(-1)?.replace(/(\.test)?\.tsx?$/, "") ?? "";
      return !/^\d{0,4}_?[a-z0-9_]+(\.(config|timing))?$/.test(name) ||
        /^(utils?|helpers?|common|misc)$|manager|handler/.test(name);
    });
    expect(wrong).toEqual([]);
  });

  it("have no default exports, no barrels, no any, no TODO", () => {
    expect(findPlaces(ALL, /^export default/)).toEqual([]);
    expect(findPlaces(ALL, /^export \* from/)).toEqual([]);
    expect(findPlaces(SOURCES, /(:|<|\bas) any\b(?!.*\*\/)/)).toEqual([]);
    expect(findPlaces(SOURCES, /\b(TODO|FIXME|XXX)\b/)).toEqual([]);
  });

  it("export only names that another file uses", () => {
    const users = listSourceFiles("main.ts", "src", "cli", "console", "build", "test", "bench");
    const words = new Map(users.map((file) => [file, new Set(readText(file).match(/\w+/g))]));
    const unused = SOURCES.flatMap((file) =>
      [...readText(file).matchAll(/^export (?:async )?(?:const|function|class|interface|type) (\w+)/gm)]
        .filter(([, name = ""]) => !users.some((user) => user !== file && words.get(user)?.has(name)))
        .map(([, name]) => `${file}: ${name}`)
    );
    expect(unused).toEqual([]);
  });

  it("name the dependencies that an operation uses; only the composition root takes all", () => {
    const whole = findPlaces(listSourceFiles("src/api", "src/http"), /\bParts\b/);
    expect(whole.filter((place) => !/^src\/api\/(call\/services|operations)\.ts:/.test(place))).toEqual([]);
  });

  it("keep SQL in store", () => {
    // The database of another program, of which ctl reads a copy.
    const foreign = "cli/commands/import/cron_table.ts";
    const sql = /\b(select\b.+\bfrom|insert (or \w+ )?into|update \w+ set|delete from)\b/;
    expect(findPlaces(SOURCES.filter((file) => !file.startsWith("src/store/") && file !== foreign), sql))
      .toEqual([]);
  });

  it("never open a waiting transaction, nor a second SQLite (facts, libSQL 11) [BAK-8]", () => {
    const banned = /executeMultiple|\.transaction\(|\.migrate\(|node:sqlite|PRAGMA locking_mode/;
    // ctl reads a copy of another program's database, in a process that never opens the service's.
    const foreign = "cli/commands/import/cron_table.ts";
    expect(findPlaces(SOURCES.filter((file) => file !== foreign), banned)).toEqual([]);
  });

  // Another open and close in this process would release SQLite's locks and lose rows (facts, libSQL 3).
  it("leave the database files to libSQL [DUR-6]", () => {
    const opening =
      /Deno\.(open|create|readFile|readTextFile|writeFile|writeTextFile|copyFile|truncate|link|symlink)(Sync)?\(/;
    // The addon is a separate file, unpacked from the executable. A copy is not the database yet.
    const other = ["src/store/db/addon.ts", "src/store/db/copy.ts"];
    const store = SOURCES.filter((file) => file.startsWith("src/store/") && !other.includes(file));
    expect(findPlaces(store, opening)).toEqual([]);
    // Files that may contain its name: the default, the archive, which works on a copy, and the doctor, which
    // only checks it.
    const named = SOURCES.filter((file) => /svc\.db/.test(readText(file)));
    expect(named).toEqual([
      "src/api/system/doctor.ts",
      "src/config/schema.ts",
      "src/domain/system/backup.ts",
    ]);
    expect(findPlaces(["src/api/system/doctor.ts"], opening).length).toBe(
      findPlaces(["src/api/system/doctor.ts"], /writeTextFile\(probe/).length,
    );
  });

  it("bound caches by lru-cache, and wait by backoffMs", () => {
    expect(findPlaces(SOURCES, /\.size >=? [A-Z_]+_MAX\b/)).toEqual([]);
    expect(findPlaces(SOURCES, /Math\.min\(.*(\* 2|\* \d+ \*\*|\b\d \*\* )/)).toEqual([]);
  });

  it("give every write its mode", () => {
    expect(findPlaces(SOURCES, /client\.batch\((?!.*"write")/)).toEqual([]);
  });

  it("use no private interface of the runtime (decision 0030)", () => {
    expect(findPlaces(SOURCES, /\bDeno\b.*\binternal\b|\binternal\b.*\bDeno\b|\bDeno\s*\[|\[internal\]/))
      .toEqual([]);
    expect(findPlaces(SOURCES, /\bprocess\s*\.\s*binding\b|["']ext:|["']node:internal|\b__bootstrap\b/))
      .toEqual([]);
  });

  it("throw only Errors, and name no host of a registry", () => {
    expect(findPlaces(ALL, /throw ["'`]/)).toEqual([]);
    expect(findPlaces(ALL, /registry\.npm|deb\.debian|jsr\.io/)).toEqual([]);
  });
});
