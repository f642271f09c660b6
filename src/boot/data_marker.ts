import { basename, dirname, join, relative } from "node:path";
import { z } from "zod";
import { ServiceError } from "../domain/call/error.ts";
import { createId } from "../base/id.ts";
import { createLogger } from "../base/log.ts";
import { type DataPaths, resolveLinks } from "../base/paths.ts";
import { writeWhole } from "../base/whole_file.ts";
import type { Database } from "../store/db/database.ts";
import { readSchema } from "../store/db/migrate.ts";
import { findSetting, storeSetting } from "../store/db/setting.ts";

const log = createLogger("database");

const markerSchema = z.object({ database: z.string(), id: z.string() });
type Marker = z.output<typeof markerSchema>;

/**
 * Names the database that belongs to a data directory. Without the marker a deleted or emptied database file would open as a new one, and
 * the service would start without its data (reliability DBF-7).
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
        "Cannot start: a restore was interrupted. Run it again with: svc restore <file>. " +
          `The replaced data is in ${restoring.trim()}.`,
      );
    }
    const database = formatName(paths, url);
    const text = await Deno.readTextFile(paths.marker).catch(() => "null");
    const found = markerSchema.nullable().catch(null).parse(parseJson(text));
    const marker = new DataMarker(paths, database, found);
    const path = getFilePath(url);
    if (path !== null && marker.#isKnown()) {
      const size = (await Deno.stat(path).catch(() => null))?.size ?? null;
      if (size === null) throw marker.#createLostError("its file is gone");
      if (size === 0) throw marker.#createLostError("its file is empty");
    }
    return marker;
  }

  /** Throws `unavailable` when a known database is empty. */
  async check(db: Database): Promise<void> {
    if (!this.#isKnown()) return;
    if ((await readSchema(db)).version === 0) throw this.#createLostError("it is empty");
  }

  /** Stores the name of the database in the directory, and the id of the directory in the database. Requires the schema. */
  async write(db: Database): Promise<void> {
    if (this.#database === ":memory:") return;
    let id = await findSetting(db, "database_id");
    if (id === null) {
      id = createId();
      await db.write([storeSetting("database_id", id)]);
    }
    if (this.#found?.id === id && this.#isKnown()) return;
    if (this.#found !== null) {
      log.warning("This data directory now uses another database: {database}", {
        database: this.#database,
      });
    }
    await writeWhole(this.#paths.marker, JSON.stringify({ database: this.#database, id }) + "\n");
  }

  #isKnown(): boolean {
    return this.#found?.database === this.#database;
  }

  #createLostError(what: string): ServiceError {
    return new ServiceError(
      "unavailable",
      `Cannot open the database ${this.#database} of ${this.#paths.root}: ${what}, but it had data before. Nothing was changed. ` +
        "Restore a backup with: svc restore <file>. To start with an empty database, move the directory away.",
    );
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** Returns the path of a database file, or null for another URL. */
export function getFilePath(url: string): string | null {
  return url.startsWith("file:") ? url.slice("file:".length) : null;
}

// The relative path lets operators move the directory. A URL loses its secrets.
function formatName(paths: DataPaths, url: string): string {
  const path = getFilePath(url);
  if (path === null) return url.replace(/\/\/[^@/]*@/, "//").replace(/\?.*$/, "");
  const inside = relative(paths.root, join(resolveLinks(dirname(path)), basename(path)));
  return inside.startsWith("..") ? path : inside;
}
