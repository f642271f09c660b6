/** How much a run changed. */
export interface ChangeCounts {
  files_changed: number;
  insertions: number;
  deletions: number;
}

/** Formats counts as git does, such as `1 file changed, 2 insertions, 0 deletions`. */
export function formatChangeCounts({ files_changed, insertions, deletions }: ChangeCounts): string {
  return `${formatFiles(files_changed)} changed, ${count(insertions, "insertion")}, ${
    count(deletions, "deletion")
  }`;
}

export function formatFiles(files: number): string {
  return count(files, "file");
}

function count(number: number, word: string): string {
  return `${number} ${word}${number === 1 ? "" : "s"}`;
}
