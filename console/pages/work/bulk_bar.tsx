import type { ComponentChildren } from "preact";
import { confirm, type Confirmation } from "../../parts/dialog.tsx";
import { toApiError } from "../../live/api_error.ts";
import type { Selection } from "../../parts/selection.ts";
import { showToast } from "../../parts/toast.tsx";

/** The actions for the selected rows. */
export function BulkBar({ selection, children }: { selection: Selection; children: ComponentChildren }) {
  if (selection.ids.size === 0) return null;
  return (
    <div class="bulk" role="region" aria-label="Selected rows">
      <p role="status">{selection.ids.size} selected</p>
      {children}
      <button type="button" class="small" onClick={selection.clear}>Clear selection</button>
    </div>
  );
}

/**
 * Asks, then calls `send` for each item, and says how many succeeded and why the first of the others failed. An item that ended
 * meanwhile is refused, and the others continue. Returns false without a call when the user declines.
 */
export async function applyToEach<T>(
  items: readonly T[],
  question: Confirmation,
  send: (item: T) => Promise<unknown>,
  done: (succeeded: number, all: number) => string | Promise<string>,
): Promise<boolean> {
  if (items.length === 0 || !await confirm(question)) return false;
  const failures: unknown[] = [];
  for (const item of items) await send(item).catch((error) => failures.push(error));
  const text = await done(items.length - failures.length, items.length);
  showToast(
    failures.length === 0 ? text : `${text}. ${toApiError(failures[0]).message}`,
    failures.length > 0,
  );
  return true;
}
