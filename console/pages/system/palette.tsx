import { useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { useLocation } from "wouter-preact";
import type { Schemas } from "../../live/api.ts";
import { narrow } from "../../live/narrow.ts";
import { type FoundTexts, loadConversations, type SearchHit, searchTexts } from "../../live/search.ts";
import { workers } from "../../live/workers.ts";
import { Dialog } from "../../parts/dialog.tsx";
import { formatConversationName } from "../../parts/format.ts";
import { Ago } from "../../parts/time.tsx";

const KINDS = ["Workers", "Conversations", "Pages", "Commands", "Messages", "Runs", "Memory"] as const;

/** A line of the palette: a page to open, or a command to run. */
export interface PaletteEntry {
  kind: (typeof KINDS)[number];
  text: string;
  open: string | (() => void);
  /** Places of the words in the text. */
  ranges?: readonly (readonly number[])[];
  at?: number;
}

export interface PaletteProps {
  /** Pages and commands. */
  entries: readonly PaletteEntry[];
  onClose: () => void;
}

const SHOWN_OF_KIND = 6;
const PAUSE_MS = 150;
const NOTHING: FoundTexts = { hits: [], isPartial: false };

/** The search for workers, conversations, runs, messages, memory, pages and commands. */
export function Palette({ entries, onClose }: PaletteProps) {
  const [words, setWords] = useState("");
  const [current, setCurrent] = useState(0);
  const [, go] = useLocation();
  const { found, searching } = useTexts(words.trim());
  const shown = useShownEntries(entries, words.trim(), found);
  const id = useId();
  useEffect(() => setCurrent(0), [words]);
  const chosen = Math.min(current, shown.length - 1);
  function choose(entry: PaletteEntry | undefined): void {
    if (entry === undefined) return;
    onClose();
    if (typeof entry.open === "string") go(entry.open);
    else entry.open();
  }
  function onKeyDown(event: KeyboardEvent): void {
    if (event.isComposing) return;
    const last = shown.length - 1;
    const next = {
      ArrowDown: chosen === last ? 0 : chosen + 1,
      ArrowUp: chosen <= 0 ? last : chosen - 1,
      PageDown: Math.min(last, chosen + SHOWN_OF_KIND),
      PageUp: Math.max(0, chosen - SHOWN_OF_KIND),
    }[event.key];
    if (next === undefined && event.key !== "Enter") return;
    event.preventDefault();
    if (next === undefined) choose(shown[chosen]);
    else setCurrent(next);
  }
  return (
    <Dialog title="Search" wide onClose={onClose}>
      <div class="palette">
        <input
          type="text"
          role="combobox"
          aria-label="Search workers, conversations, runs, messages, pages and commands"
          aria-expanded="true"
          aria-controls={`${id}-list`}
          aria-autocomplete="list"
          {...(chosen < 0 ? {} : { "aria-activedescendant": `${id}-${chosen}` })}
          placeholder="Name, words or command"
          autocomplete="off"
          maxLength={200}
          autofocus
          value={words}
          onInput={(event) => setWords(event.currentTarget.value)}
          onKeyDown={onKeyDown}
        />
        <PaletteList id={id} shown={shown} chosen={chosen} onChoose={choose} />
        <div class="palette-foot">
          <p class="hint" role="status">
            {describeState({ words, count: shown.length, searching, isPartial: found.isPartial })}
          </p>
          <button type="button" class="small" onClick={onClose}>Close</button>
        </div>
      </div>
    </Dialog>
  );
}

interface PaletteState {
  words: string;
  count: number;
  searching: boolean;
  isPartial: boolean;
}

function describeState({ words, count, searching, isPartial }: PaletteState): string {
  if (searching) return "Searching…";
  if (count === 0) return `Nothing found for ${words.trim()}.`;
  if (isPartial) return "Only the newest texts were searched. Use a longer word to search all.";
  return narrow.value ? "" : "↑ ↓ to choose, Enter to open, Esc to close";
}

interface PaletteListProps {
  id: string;
  shown: readonly PaletteEntry[];
  chosen: number;
  onChoose: (entry: PaletteEntry) => void;
}

function PaletteList({ id, shown, chosen, onChoose }: PaletteListProps) {
  const list = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    list.current?.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" });
  }, [chosen, shown]);
  const groups = KINDS.map((kind) => ({ kind, entries: shown.filter((entry) => entry.kind === kind) }))
    .filter(({ entries }) => entries.length > 0);
  return (
    <div ref={list} id={`${id}-list`} role="listbox" aria-label="Results" class="palette-list" tabIndex={-1}>
      {groups.map(({ kind, entries }) => (
        <div key={kind} role="group" aria-labelledby={`${id}-${kind}`}>
          <p id={`${id}-${kind}`} class="palette-kind" role="presentation">{kind}</p>
          {entries.map((entry) => {
            const index = shown.indexOf(entry);
            return (
              <div
                key={index}
                id={`${id}-${index}`}
                role="option"
                aria-selected={index === chosen}
                class="palette-entry"
                onClick={() => onChoose(entry)}
              >
                <span class="palette-text">
                  <Marked text={entry.text} ranges={entry.ranges ?? []} />
                </span>
                {entry.at !== undefined && <Ago at={entry.at} />}
              </div>
            );
          })}
        </div>
      ))}
    </div>
  );
}

function Marked({ text, ranges }: { text: string; ranges: readonly (readonly number[])[] }) {
  const parts = ranges.map(([from, to], index) => (
    <>
      {text.slice(ranges[index - 1]?.[1] ?? 0, from)}
      <mark>{text.slice(from, to)}</mark>
    </>
  ));
  return <>{parts}{text.slice(ranges.at(-1)?.[1] ?? 0)}</>;
}

/** Searches when the user pauses. The earlier results stay until then. */
function useTexts(words: string): { found: FoundTexts; searching: boolean } {
  const [state, setState] = useState({ words: "", found: NOTHING });
  useEffect(() => {
    if (words === "") return setState({ words, found: NOTHING });
    const gone = new AbortController();
    const timer = setTimeout(() => {
      searchTexts(words, gone.signal).then(
        (found) => gone.signal.aborted || setState({ words, found }),
        () => gone.signal.aborted || setState({ words, found: NOTHING }),
      );
    }, PAUSE_MS);
    return () => {
      clearTimeout(timer);
      gone.abort();
    };
  }, [words]);
  return { found: state.found, searching: state.words !== words };
}

function useShownEntries(
  entries: readonly PaletteEntry[],
  words: string,
  { hits }: FoundTexts,
): PaletteEntry[] {
  const [conversations, setConversations] = useState<readonly Schemas["Conversation"][]>([]);
  useEffect(() => void loadConversations().then(setConversations, () => {}), []);
  const wanted = words.toLowerCase().split(/\s+/);
  const named = [
    ...(workers.value ?? []).map(({ id, name }): PaletteEntry => ({
      kind: "Workers",
      text: name,
      open: `/console/workers/${id}`,
    })),
    ...conversations.map(toConversationEntry),
    ...entries,
  ].filter(({ text }) => wanted.every((word) => text.toLowerCase().includes(word)));
  const all = [...named, ...(words === "" ? [] : hits.map(toHitEntry))];
  return KINDS.flatMap((kind) => all.filter((entry) => entry.kind === kind).slice(0, SHOWN_OF_KIND));
}

function toConversationEntry(conversation: Schemas["Conversation"]): PaletteEntry {
  const { session_id, session_key, name, text } = conversation;
  return {
    kind: "Conversations",
    text: formatConversationName(name) || (session_id === null ? session_key : text || "a conversation"),
    open: formatConversationAddress(session_key),
  };
}

function formatConversationAddress(sessionKey: string): string {
  return `/console/chat/${encodeURIComponent(/^local:(.+)$/.exec(sessionKey)?.[1] ?? sessionKey)}`;
}

function toHitEntry(hit: SearchHit): PaletteEntry {
  const { kind, id, at, session_key, excerpt, ranges } = hit;
  const shared = { text: excerpt, ranges, at };
  if (kind === "result") return { ...shared, kind: "Runs", open: `/console/executions/${id}` };
  if (kind === "memory") {
    return { ...shared, kind: "Memory", open: `/console/memory?scope=${encodeURIComponent(session_key)}` };
  }
  return { ...shared, kind: "Messages", open: formatConversationAddress(session_key) };
}
