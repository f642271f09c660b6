// The share of the files that connections leave to runs, logs, uploads and the database. Without any file left, Deno may end
// the process, so the limit is far from that.
const FILES_KEPT_BACK_SHARE = 0.4;
const FILES_KEPT_BACK_MIN = 100;
const CONNECTIONS_MIN = 8;

/** How many connections may be open, by the number of files that may be open. */
export function connectionsMax(files: number): number {
  const kept = Math.max(FILES_KEPT_BACK_MIN, files * FILES_KEPT_BACK_SHARE);
  return files === Infinity ? Infinity : Math.max(CONNECTIONS_MIN, Math.floor(files - kept));
}

/** How many files this process may open: the soft limit, which Deno raises to the hard one at its start. Infinity where it is unknown. */
export function openFilesMax(): number {
  try {
    const soft = /^Max open files\s+(\d+)/m.exec(Deno.readTextFileSync("/proc/self/limits"))?.[1];
    return soft === undefined ? Infinity : Number(soft);
  } catch {
    return Infinity;
  }
}
