import { basename, dirname, join, relative } from "node:path";
import { z } from "zod";
import { ServiceError } from "../domain/call/error.ts";
import { newId } from "../base/id.ts";
import { logger } from "../base/log.ts";
import { type DataPaths, realPath } from "../base/paths.ts";
import { writeWhole } from "../base/whole_file.ts";
import type { Database } from "../store/db/database.ts";
import { readSchema } from "../store/db/migrate.ts";
import { findSetting, saveSetting } from "../store/db/setting.ts";

const log = logger("database");

const markerSchema = z.object({ database: z.string(), id: z.string() });
type Marker = z.output<typeof markerSchema>;

/**
 * The marker in the data directory says which database belongs to it. Without it a
 * database file that was deleted or emptied would open as a new one, and the service would start without its data (reliability DBF-7).
 */
export class DataMarker {
  readonly #paths: DataPaths;
  readonly #database: string;
  readonly #found: Marker | null;

  private constructor(paths: DataPaths, database: string, found: Marker | null) {
    this.#paths = paths;
    this.#database = database;
    this.#found = found;
  }

  /** Reads the marker. Throws `unavailable` when a restore was interrupted, or when the database's file is missing or empty. */
  static async read(paths: DataPaths, url: string): Promise<DataMarker> {
    const restoring = await Deno.readTextFile(paths.restoring).catch(() => null);
    if (restoring !== null) {
      throw new ServiceError(
        "unavailable",
        "Cannot start: a restore was cut off in the middle. Run it again with: svc restore <file>. " +
          `What was there before is in ${restoring.trim()}`,
      );
    }
    const database = nameOf(paths, url);
    const text = await Deno.readTextFile(paths.marker).catch(() => "null");
    const found = markerSchema.nullable().catch(null).parse(parsed(text));
    const marker = new DataMarker(paths, database, found);
    const path = filePath(url);
    if (path !== null && marker.#known()) {
      const size = (await Deno.stat(path).catch(() => null))?.size ?? null;
      if (size === null) throw marker.#lost("its file is gone");
      if (size === 0) throw marker.#lost("its file is empty");
    }
    return marker;
  }

  /** Throws `unavailable` when the database that was opened has nothing in it although it should. */
  async check(db: Database): Promise<void> {
    if (!this.#known()) return;
    if ((await readSchema(db)).version === 0) throw this.#lost("there is nothing in it");
  }

  /** Stores the database's name in the directory and the directory's id in the database. The schema has to exist. */
  async write(db: Database): Promise<void> {
    if (this.#database === ":memory:") return;
    let id = await findSetting(db, "database_id");
    if (id === null) {
      id = newId();
      await db.write([saveSetting("database_id", id)]);
    }
    if (this.#found?.id === id && this.#known()) return;
    if (this.#found !== null) {
      log.warning("This data directory has another database than before: {database}", {
        database: this.#database,
      });
    }
    await writeWhole(this.#paths.marker, JSON.stringify({ database: this.#database, id }) + "\n");
  }

  #known(): boolean {
    return this.#found?.database === this.#database;
  }

  #lost(what: string): ServiceError {
    return new ServiceError(
      "unavailable",
      `Cannot open the database ${this.#database} of ${this.#paths.root}: ${what}, and it was not so before. Nothing ` +
        "was changed. Bring back a backup with: svc restore <file>. To begin anew on purpose, move the directory away",
    );
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** The path of a database that is a file, else null. */
export function filePath(url: string): string | null {
  return url.startsWith("file:") ? url.slice("file:".length) : null;
}

// Relative to the directory, so that the directory can be moved; a URL without its secrets.
function nameOf(paths: DataPaths, url: string): string {
  const path = filePath(url);
  if (path === null) return url.replace(/\/\/[^@/]*@/, "//").replace(/\?.*$/, "");
  const inside = relative(paths.root, join(realPath(dirname(path)), basename(path)));
  return inside.startsWith("..") ? path : inside;
}
