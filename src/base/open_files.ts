// The share of files that stays available to runs, logs, uploads and the database. Deno may end the process when no file
// descriptor is left, so the limit keeps far away from that.
const FILES_RESERVED_SHARE = 0.4;
const FILES_RESERVED_MIN = 100;
const CONNECTIONS_MIN = 8;

/** Returns the connection limit for a number of file descriptors. */
export function getConnectionsMax(files: number): number {
  const reserved = Math.max(FILES_RESERVED_MIN, files * FILES_RESERVED_SHARE);
  return files === Infinity ? Infinity : Math.max(CONNECTIONS_MIN, Math.floor(files - reserved));
}

/**
 * Returns the soft limit of open files, which Deno raises to the hard limit at its start. Returns Infinity where it is
 * unknown.
 */
export function readOpenFilesMax(): number {
  try {
    const soft = /^Max open files\s+(\d+)/m.exec(Deno.readTextFileSync("/proc/self/limits"))?.[1];
    return soft === undefined ? Infinity : Number(soft);
  } catch {
    return Infinity;
  }
}
