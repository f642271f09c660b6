// What may be pressed again and again at once, such as the way to the next hit.
const AGAIN = "[data-again]";

/**
 * Makes a double click one click, wherever its second half lands: on the same button, or on what has moved under the pointer
 * since. A key that is held down presses once. Nothing on the service is done twice by it (contract 17.4).
 */
export function pressOnce(): void {
  addEventListener("click", (event) => {
    if (event.detail > 1 && pressable(event.target)) end(event);
  }, { capture: true });
  addEventListener("keydown", (event) => {
    if (event.repeat && event.key === "Enter" && pressable(event.target)) end(event);
  }, { capture: true });
}

function pressable(target: EventTarget | null): boolean {
  if (!(target instanceof Element)) return false;
  const pressed = target.closest("button, a[href]");
  return pressed !== null && !pressed.matches(AGAIN);
}

function end(event: Event): void {
  event.preventDefault();
  event.stopImmediatePropagation();
}
