import type { Page } from "playwright-core";

const STEPS_MIN = 120;
// The page may still be waiting for the service.
const LOOK_MS = 10_000;
// Computes the accessible name of the focused element.
const NAME = `(() => {
  const one = document.activeElement;
  if (one === null || one === document.body) return "";
  const label = one.labels?.[0]?.textContent ?? "";
  return (one.ariaLabel || label || one.textContent || "").trim();
})()`;

/** A visitor without a mouse, who reaches elements only with Tab. */
export class Keyboard {
  readonly #page: Page;

  constructor(page: Page) {
    this.#page = page;
  }

  /** Presses Tab until the focused element has this name. Throws if none has. */
  async to(name: string | RegExp): Promise<void> {
    const seen: string[] = [];
    const end = performance.now() + LOOK_MS;
    for (let steps = 0; steps < STEPS_MIN || performance.now() < end; steps++) {
      const here = String(await this.#page.evaluate(NAME));
      if (typeof name === "string" ? here === name : name.test(here)) return;
      seen.push(here.slice(0, 30));
      await this.#page.keyboard.press("Tab");
    }
    throw new Error(`Tab never came to ${name}; it came to ${[...new Set(seen)].join(" | ")}`);
  }

  /** Presses a button or follows a link. */
  async press(name: string | RegExp): Promise<void> {
    await this.to(name);
    await this.#page.keyboard.press("Enter");
  }

  /** Replaces the text of a field. */
  async write(name: string | RegExp, text: string): Promise<void> {
    await this.to(name);
    await this.#page.keyboard.press("Control+A");
    await this.#page.keyboard.type(text);
  }

  /** Toggles a checkbox. */
  async tick(name: string | RegExp): Promise<void> {
    await this.to(name);
    await this.#page.keyboard.press("Space");
  }

  /** Chooses from a list by its first letters. */
  async choose(name: string | RegExp, letters: string): Promise<void> {
    await this.to(name);
    await this.#page.keyboard.type(letters);
  }
}
