/** Version of this program. A test compares it with deno.json. */
export const VERSION = "0.1.0";
/** Commit of this build and its time (ISO 8601). The build sets both. They are empty when svc runs from source. */
export const COMMIT: string = "";
export const COMMIT_TIME: string = "";
/** Versions of libSQL's package and of the SQLite in it (reliability DUR-7). Tests compare both. */
export const LIBSQL_VERSION = "0.5.29";
export const SQLITE_VERSION = "3.45.1";

/** Formats the output of `svc version`: one line, or with `json` one object with the versions of all components. */
export function formatVersion(json: boolean): string {
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
