import { signal } from "@preact/signals";

/** Whether the list of keyboard shortcuts is open. */
export const helpOpen = signal(false);

export function openKeyHelp(): void {
  helpOpen.value = true;
}
