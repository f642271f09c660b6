import { signal } from "@preact/signals";
import { toApiError } from "../live/api_error.ts";

const VISIBLE_MS = 5_000;
const toast = signal<{ text: string; bad: boolean } | null>(null);

export function showToast(text: string, bad = false): void {
  const mine = { text, bad };
  toast.value = mine;
  setTimeout(() => toast.value === mine && (toast.value = null), VISIBLE_MS);
}

/** Runs `work` and shows its error, or `done`. Returns whether it succeeded. */
export async function attempt(work: () => Promise<unknown>, done = ""): Promise<boolean> {
  try {
    await work();
    if (done !== "") showToast(done);
    return true;
  } catch (error) {
    showToast(toApiError(error).message, true);
    return false;
  }
}

export function Toast() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {toast.value !== null && <p class={toast.value.bad ? "toast bad" : "toast"}>{toast.value.text}</p>}
    </div>
  );
}
