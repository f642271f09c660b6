import { signal } from "@preact/signals";
import type { Schemas } from "./api.ts";
import { getTell } from "./devices.ts";

type InboxItem = Schemas["InboxItem"];

const ENABLED = "svc.notify";

/** Whether this browser shows a notification for a new inbox item while the page is hidden. */
export const notificationsEnabled = signal(
  canNotify() && Notification.permission === "granted" && localStorage.getItem(ENABLED) !== null,
);

/** Whether the browser supports notifications: it needs a secure context, and the user must not have blocked them. */
export function canNotify(): boolean {
  return "Notification" in globalThis && isSecureContext && Notification.permission !== "denied";
}

export async function enableNotifications(on: boolean): Promise<void> {
  notificationsEnabled.value = on && await Notification.requestPermission() === "granted";
  if (notificationsEnabled.value) localStorage.setItem(ENABLED, "yes");
  else localStorage.removeItem(ENABLED);
}

/** Shows a notification for each new item, if the page is hidden. The tag keeps several tabs from showing it twice. */
export function notifyNew(before: readonly InboxItem[] | undefined, after: readonly InboxItem[]): void {
  // The push service notifies this browser of the same items.
  if (!notificationsEnabled.value || getTell().needs_you || !document.hidden || before === undefined) return;
  const known = new Set(before.map(buildItemKey));
  for (const item of after) {
    const tag = buildItemKey(item);
    if (known.has(tag)) continue;
    const title = item.title || item.kind.replaceAll("_", " ");
    const notification = new Notification(title, { body: item.worker_name, tag });
    notification.onclick = () => globalThis.focus();
  }
}

/** Builds the identity of an inbox item, which has no id. */
export function buildItemKey(item: InboxItem): string {
  const { kind, execution_id, message_id, worker_id, engine, task_id, budget_id, at } = item;
  return [kind, execution_id, message_id, worker_id, engine, task_id, budget_id, at].join(" ");
}
