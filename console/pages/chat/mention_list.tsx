import { workers } from "../../live/workers.ts";

const NAMES_MAX = 6;

/** Finds the worker names that complete the last `@` before the cursor. */
export function findMentions(text: string, cursor: number): string[] {
  const typed = /(?:^|\s)@([^@\n]{0,40})$/.exec(text.slice(0, cursor))?.[1]?.toLowerCase();
  if (typed === undefined) return [];
  const found = (workers.value ?? []).map(({ name }) => name).filter((name) => {
    const known = name.toLowerCase();
    return known.startsWith(typed) && known !== typed.trimEnd();
  });
  return [...new Set(found)].slice(0, NAMES_MAX);
}

/** Replaces the mention before the cursor with a whole name. */
export function insertMention(text: string, cursor: number, name: string): string {
  const start = text.lastIndexOf("@", cursor - 1);
  return `${text.slice(0, start)}@${name} ${text.slice(cursor)}`;
}

export function MentionList({ names, choice, onChoose }: {
  names: string[];
  choice: number;
  onChoose: (name: string) => void;
}) {
  return (
    <ul class="mentions" id="mentions" role="listbox" aria-label="Workers">
      {names.map((name, index) => (
        <li
          key={name}
          id={`mention-${index}`}
          role="option"
          aria-selected={index === choice}
          onMouseDown={(event) => (event.preventDefault(), onChoose(name))}
        >
          @{name}
        </li>
      ))}
    </ul>
  );
}
