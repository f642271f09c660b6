import { signal } from "@preact/signals";
import type { InboxItem } from "./inbox.ts";

// Kept for this browser until somebody turns it off: what it says comes from the session alone.
const KEPT = "svc.notify";

/** Whether this browser tells of new things in the inbox while nobody looks (contract 17). */
export const notifying = signal(mayNotify() && localStorage.getItem(KEPT) !== null);

/** Whether this browser can be asked for it at all: not without a secure context, nor when it was refused. */
export function canNotify(): boolean {
  return "Notification" in globalThis && isSecureContext && Notification.permission !== "denied";
}

/** Turns it on, asking the browser's owner, or off. */
export async function setNotifying(on: boolean): Promise<void> {
  notifying.value = on && await Notification.requestPermission() === "granted";
  if (notifying.value) localStorage.setItem(KEPT, "yes");
  else localStorage.removeItem(KEPT);
}

/** Tells of what is new; only while this page is not seen. Several tabs tell it once: the browser keeps one of a tag. */
export function tellNew(before: readonly InboxItem[] | undefined, after: readonly InboxItem[]): void {
  if (!notifying.value || !document.hidden || before === undefined) return;
  const known = new Set(before.map(tagOf));
  for (const item of after) {
    if (known.has(tagOf(item))) continue;
    const shown = new Notification(item.title || item.kind.replaceAll("_", " "), {
      body: item.worker_name,
      tag: tagOf(item),
    });
    shown.onclick = () => globalThis.focus();
  }
}

function mayNotify(): boolean {
  return canNotify() && Notification.permission === "granted";
}

function tagOf(
  { kind, execution_id, message_id, worker_id, engine, task_id, budget_id, at }: InboxItem,
): string {
  return [kind, execution_id, message_id, worker_id, engine, task_id, budget_id, at].join(" ");
}
