import { workers } from "../../live/workers.ts";

const SHOWN_MAX = 6;

/** Names that go on with what stands behind the last `@` before the cursor. */
export function mentioned(text: string, cursor: number): string[] {
  const begun = /(?:^|\s)@([^@\n]{0,40})$/.exec(text.slice(0, cursor))?.[1];
  if (begun === undefined) return [];
  const small = begun.toLowerCase();
  const found = (workers.value ?? []).map(({ name }) => name).filter((name) => {
    const known = name.toLowerCase();
    return known.startsWith(small) && known !== small.trimEnd();
  });
  return [...new Set(found)].slice(0, SHOWN_MAX);
}

/** The text with the begun name put in whole. */
export function completed(text: string, cursor: number, name: string): string {
  const start = text.lastIndexOf("@", cursor - 1);
  return `${text.slice(0, start)}@${name} ${text.slice(cursor)}`;
}

/** The names to choose from, over the line that is written. */
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
