/** Version of this program; the same as in deno.json (a test compares them). */
export const VERSION = "0.1.0";
/** Commit that this was built from, and its time (ISO 8601); empty when run from source. The build fills them in. */
export const COMMIT: string = "";
export const COMMIT_TIME: string = "";
/** The database inside: libSQL's package, and the SQLite that it is made of (reliability DUR-7; tests compare both). */
export const LIBSQL_VERSION = "0.5.29";
export const SQLITE_VERSION = "3.45.1";

/** What `svc version` prints: one line, or with `json` one object with everything that this program is made of. */
export function versionText(json: boolean): string {
  if (!json) {
    const built = COMMIT === ""
      ? "from source"
      : `${COMMIT.replace(/^(.{12})[0-9a-f]*/, "$1")}, ${COMMIT_TIME.slice(0, 10)}`;
    return `svc ${VERSION} (${built})`;
  }
  return JSON.stringify({
    version: VERSION,
    commit: COMMIT,
    commit_time: COMMIT_TIME,
    target: Deno.build.target,
    deno: Deno.version.deno,
    v8: Deno.version.v8,
    sqlite: SQLITE_VERSION,
    libsql: LIBSQL_VERSION,
  });
}
