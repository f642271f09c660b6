// Buttons that users press repeatedly, e.g. the one for the next match.
const REPEATABLE = "[data-again]";

/**
 * Turns a double click into one click, even if the layout has moved another button under the pointer. A key that is held down
 * presses once. So no action runs twice by accident.
 */
export function ignoreDoublePresses(): void {
  addEventListener("click", (event) => {
    if (event.detail > 1 && isPressable(event.target)) stop(event);
  }, { capture: true });
  addEventListener("keydown", (event) => {
    if (event.repeat && event.key === "Enter" && isPressable(event.target)) stop(event);
  }, { capture: true });
}

function isPressable(target: EventTarget | null): boolean {
  if (!(target instanceof Element)) return false;
  const pressed = target.closest("button, a[href]");
  return pressed !== null && !pressed.matches(REPEATABLE);
}

function stop(event: Event): void {
  event.preventDefault();
  event.stopImmediatePropagation();
}
