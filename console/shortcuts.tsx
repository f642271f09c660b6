import { useEffect } from "preact/hooks";
import { openPalette } from "./palette.tsx";
import { Dialog } from "./parts/dialog.tsx";
import { helpOpen, openKeyHelp } from "./shortcut_help.ts";

const KEYS: readonly [keys: readonly string[], text: string][] = [
  [["Ctrl", "K"], "Search everything"],
  [["j"], "Next row"],
  [["k"], "Previous row"],
  [["Enter"], "Open the row"],
  [["Space"], "Select the row of a table"],
  [["/"], "Search or filter"],
  [["Tab"], "Next field or button"],
  [["Esc"], "Close a dialog"],
  [["?"], "This list"],
];

/** Handles the keys that work on every page, and shows their list. */
export function Shortcuts() {
  useEffect(() => {
    addEventListener("keydown", handleKey);
    return () => removeEventListener("keydown", handleKey);
  }, []);
  if (!helpOpen.value) return null;
  const close = () => helpOpen.value = false;
  return (
    <Dialog title="Keyboard shortcuts" onClose={close}>
      <dl class="keys">
        {KEYS.map(([keys, text]) => (
          <>
            <dt>{keys.map((key) => <kbd key={key}>{key}</kbd>)}</dt>
            <dd>{text}</dd>
          </>
        ))}
      </dl>
      <div class="actions end">
        <button type="button" onClick={close}>Close</button>
      </div>
    </Dialog>
  );
}

const WRITES = "input, textarea, select, [contenteditable=true]";
const ROWS = "main :is(a.row, button.row, a.row-link, .data tbody th a)";
const SEARCH = "main :is(input[type=search], .filters select)";

function handleKey(event: KeyboardEvent): void {
  if (isPaletteKey(event)) {
    event.preventDefault();
    openPalette();
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  const { target } = event;
  if (target instanceof Element && target.matches(WRITES)) return;
  if (document.querySelector("dialog[open]") !== null) return;
  const run = ACTIONS[event.key];
  if (run === undefined) return;
  event.preventDefault();
  run();
}

// Also while the user writes. Another dialog stays on top.
function isPaletteKey(event: KeyboardEvent): boolean {
  const { key, ctrlKey, metaKey, altKey, shiftKey, isComposing } = event;
  return key.toLowerCase() === "k" && ctrlKey !== metaKey && !altKey && !shiftKey && !isComposing &&
    document.querySelector("dialog[open]") === null;
}

const ACTIONS: Record<string, () => void> = {
  "?": openKeyHelp,
  "/": () => findVisible(SEARCH)[0]?.focus(),
  j: () => moveFocus(1),
  k: () => moveFocus(-1),
};

/** Moves the focus to the next or previous row. Without a focused row, to the first one. */
function moveFocus(by: 1 | -1): void {
  // A grid moves between its rows itself while it has the focus.
  const [grid] = findVisible("main [role=grid]");
  if (grid !== undefined) return grid.focus();
  const rows = findVisible(ROWS);
  const current = rows.findIndex((row) => row === document.activeElement);
  const row = rows[current === -1 ? 0 : current + by];
  row?.focus({ preventScroll: true });
  row?.scrollIntoView({ block: "nearest" });
}

function findVisible(selector: string): HTMLElement[] {
  return [...document.querySelectorAll<HTMLElement>(selector)].filter((element) =>
    element.offsetParent !== null
  );
}
