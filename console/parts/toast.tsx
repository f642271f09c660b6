import { signal } from "@preact/signals";
import { refusalOf } from "../live/api.ts";

const SHOWN_MS = 5_000;
const said = signal<{ text: string; bad: boolean; number: number } | null>(null);
let number = 0;

/** Says in a corner that something was done. */
export function say(text: string, bad = false): void {
  const mine = ++number;
  said.value = { text, bad, number: mine };
  setTimeout(() => said.value?.number === mine && (said.value = null), SHOWN_MS);
}

/** Does something and says what came of it. Answers whether it worked. */
export async function attempt(work: () => Promise<unknown>, done = ""): Promise<boolean> {
  try {
    await work();
    if (done !== "") say(done);
    return true;
  } catch (error) {
    say(refusalOf(error).message, true);
    return false;
  }
}

/** Where it is said; once in the page. */
export function Toast() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {said.value !== null && <p class={said.value.bad ? "toast bad" : "toast"}>{said.value.text}</p>}
    </div>
  );
}
