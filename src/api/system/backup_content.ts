import { basename } from "node:path";
import { type ArchiveFile, listFilesBelow } from "../../base/archive.ts";
import { faultPoint } from "../../base/fault_point.ts";
import type { DataPaths } from "../../base/paths.ts";
import { BACKUP, type Manifest } from "../../domain/system/backup.ts";
import { isPartial } from "../../files/uploads.ts";

/**
 * Lists the files of a backup: manifest, copy of the database, signing key if requested, finished uploads and logs. A backup leaves out all
 * else: work directories, engine state, configuration (docs/how-to/back-up-and-restore.md). Files come after the copy, because an upload is
 * on disk before its row is in the database.
 */
export async function* listBackupContent(
  paths: DataPaths,
  stopping: AbortSignal,
  { manifest, copy, key }: { manifest: Manifest; copy: string; key: string | null },
): AsyncGenerator<ArchiveFile> {
  yield { name: BACKUP.manifest, content: { text: JSON.stringify(manifest, null, 2) + "\n" } };
  yield { name: BACKUP.database, content: { path: copy } };
  faultPoint("backup.mid");
  if (key !== null) yield { name: BACKUP.secretKey, content: { text: key } };
  for await (const file of listFilesBelow(paths.uploads, BACKUP.uploads)) {
    if (stopping.aborted) throw new Error("the service is stopping");
    if (!isPartial(basename(file.name))) yield file;
  }
  for await (const file of listFilesBelow(paths.logs, BACKUP.logs)) {
    if (stopping.aborted) throw new Error("the service is stopping");
    yield file;
  }
}
