import { newKey } from "./api.ts";

const PREFIX = "svc.unsent.";

/** Words on their way, with the key by which the service knows them again. */
interface Unsent {
  content: string;
  /** The name of the file that goes with them, or "". */
  file: string;
  key: string;
}

/**
 * Notes words as being on their way in a conversation, and answers their key. The same words have the same key until they have
 * arrived: those that were sent again because their answer was lost, or the page was loaded anew, are one message.
 */
export function departs(id: string, content: string, file: string): string {
  const all = read(id);
  const known = all.find((one) => one.content === content && one.file === file);
  if (known !== undefined) return known.key;
  const key = newKey();
  write(id, [...all, { content, file, key }]);
  return key;
}

/** Notes that they have arrived, or that the service will not have them. */
export function settled(id: string, key: string): void {
  write(id, read(id).filter((one) => one.key !== key));
}

/** Words that a page took with it which was closed or loaded anew before they had arrived. */
export function leftBehind(id: string): string {
  const all = read(id);
  // Several are one text from now on, and nothing that was sent before.
  if (all.length > 1) write(id, []);
  return all.map(({ content }) => content).filter(Boolean).join("\n\n");
}

function read(id: string): Unsent[] {
  return JSON.parse(sessionStorage.getItem(PREFIX + id) ?? "[]");
}

function write(id: string, all: Unsent[]): void {
  if (all.length === 0) sessionStorage.removeItem(PREFIX + id);
  else sessionStorage.setItem(PREFIX + id, JSON.stringify(all));
}
